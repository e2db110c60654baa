"""The rules of a FencePolicy beyond the types and bounds of its fields (pure).

The CustomResourceDefinition has the same rules in CEL, as far as CEL can express them at an acceptable cost. This
module has all of them, for policies from other sources, or from before a rule was added.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lastcall.model import duration
from lastcall.model.decoding import quote_value
from lastcall.model.fence_policy import PolicyLimits, PolicySpec
from lastcall.model.fencer import HTTP, KINDS, FenceAgentSpec, Fencer, RedfishSpec, Setting
from lastcall.model.int_or_percent import resolve_portion
from lastcall.model.selectors import selector_violations

PARAMETER = re.compile(r"[a-z][a-z0-9_-]{0,62}")
SECRETS = ("passwd", "password", "secret_key", "secret", "apikey", "token", "community")
"""Suffixes of the names of fence agents' parameters that hold secrets."""
SHORTEST, LONGEST = "1s", "1h"
"""The bounds of ``suspectAfter``; the upper one also applies to ``settle``."""


def policy_violations(spec: PolicySpec, fencers: Sequence[Fencer | None]) -> Iterator[str]:
    """Every violation, as field, value and rule. ``fencers`` keep the object's order; None for an unreadable one."""
    yield from _suspect_after_violations(spec.suspect_after)
    yield from _limit_violations(spec.limits)
    yield from selector_violations(spec.node_selector, "spec.nodeSelector")
    for name, count in Counter(one.name for one in fencers if one).items():
        if count > 1:
            yield f"spec.fencers: {quote_value(name)}: {count} of them have this name, which must be unique"
    for index, fencer in enumerate(fencers):
        if fencer:
            yield from _fencer_violations(fencer, f"spec.fencers[{index}]")


def _suspect_after_violations(text: str) -> Iterator[str]:
    if not duration.parse(SHORTEST) <= duration.parse(text) <= duration.parse(LONGEST):
        yield f"spec.suspectAfter: {quote_value(text)}: must be {SHORTEST} to {LONGEST}"


def _limit_violations(limits: PolicyLimits) -> Iterator[str]:
    if duration.parse(limits.settle) > duration.parse(LONGEST):
        yield f"spec.limits.settle: {quote_value(limits.settle)}: must be at most {LONGEST}"
    try:
        least = resolve_portion(limits.min_healthy, 100, up=True)
    except ValueError:
        least = -1
    if least < 0 or (isinstance(limits.min_healthy, str) and least > 100):
        yield (
            f"spec.limits.minHealthy: {quote_value(limits.min_healthy)}: must be a number from 0, or a percentage from 0% to 100%"
        )


def _fencer_violations(fencer: Fencer, at: str) -> Iterator[str]:
    given = [kind for kind in KINDS if getattr(fencer, kind) is not None]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        yield f"{at}: {found} given: must be exactly one of {', '.join(KINDS)}"
    if fencer.agent:
        yield from _agent_violations(fencer.agent, f"{at}.agent")
    if fencer.redfish:
        yield from _redfish_violations(fencer.redfish, f"{at}.redfish")


def _agent_violations(agent: FenceAgentSpec, at: str) -> Iterator[str]:
    places: dict[str, Mapping[str, object]] = {
        "parameters": agent.parameters,
        "parametersByNode": agent.parameters_by_node,
        "parametersFrom": agent.parameters_from,
        "secretParameters": agent.secret_parameters,
    }
    names = Counter(name for found in places.values() for name in found)
    for place, found in places.items():
        for name in found:
            yield from _parameter_violations(name, f"{at}.{place}", secret=place == "secretParameters")
            if names[name] > 1:
                yield f"{at}.{place}: {quote_value(name)}: must stand in one place only"
    for name, source in agent.parameters_from.items():
        yield from _exactly_one(
            {"annotation": source.annotation, "label": source.label}, f"{at}.parametersFrom[{name}]"
        )


def _parameter_violations(name: str, at: str, *, secret: bool) -> Iterator[str]:
    if not PARAMETER.fullmatch(name):
        yield f"{at}: {quote_value(name)}: must be small letters, digits, - and _, from a letter on, at most 63"
    if name == "action":
        yield f"{at}: {quote_value(name)}: is lastcall's to give"
    if not secret and name.endswith(SECRETS):
        yield f"{at}: {quote_value(name)}: is secret: must stand in secretParameters"


def _redfish_violations(redfish: RedfishSpec, at: str) -> Iterator[str]:
    for setting, where in ((redfish.address, f"{at}.address"), (redfish.system_id, f"{at}.systemID")):
        yield from _setting_violations(setting, where)
    yield from _address_violations(redfish.address, f"{at}.address")


def _setting_violations(setting: Setting, at: str) -> Iterator[str]:
    ways: dict[str, object] = {"value": setting.value, "byNode": setting.by_node or None}
    yield from _exactly_one({**ways, "annotation": setting.annotation, "label": setting.label}, at)


def _exactly_one(ways: dict[str, object], at: str) -> Iterator[str]:
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        yield f"{at}: {' and '.join(given) or 'none of them'} given: must be exactly one of {', '.join(ways)}"


def _address_violations(setting: Setting, at: str) -> Iterator[str]:
    found: Iterable[tuple[str, str]] = [(f"{at}.byNode[{node}]", text) for node, text in setting.by_node.items()]
    for where, text in (*found, *([] if setting.value is None else [(f"{at}.value", setting.value)])):
        if not re.fullmatch(HTTP, text):
            yield f"{where}: {quote_value(text)}: must be http:// or https:// with a host, and without user or query"
