"""Selects the FencePolicy of a node and computes a policy's status (pure).

An invalid policy keeps its place before the policies that are ordered after it. The nodes that it selects are left
alone until it is fixed, because its author's intent is unknown. If not even its selector can be read, it selects every
node that no earlier policy selects.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lastcall.errors import InvalidInput
from lastcall.failover.limits.storms import StormLimits
from lastcall.model.decoding import convert_readable
from lastcall.model.fence_policy import FencePolicy, PolicyLimits
from lastcall.model.fence_policy_reader import parse_policy
from lastcall.model.pods import Int32
from lastcall.model.selectors import LabelSelector

ACCEPTED = "Accepted"
"""The condition that says whether the policy is in effect, and if not, why."""
INVALID = "Invalid"
"""The reason of Accepted=False."""


def storm_limits(limits: PolicyLimits) -> StormLimits:
    """The limits of a policy as the storm guard takes them."""
    return StormLimits(
        min_healthy=limits.min_healthy,
        per_domain=limits.per_domain,
        per_hour=limits.per_hour,
        settle=limits.settle_seconds,
    )


@dataclass(frozen=True, kw_only=True)
class PolicyEntry:
    """A FencePolicy object: its content, or the violations that keep it from taking effect."""

    name: str
    priority: int
    selector: LabelSelector
    policy: FencePolicy | None
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PolicyChoice:
    """The policy for a node, or the reason why none applies; ``name`` is the chosen policy's, even if it is invalid."""

    policy: FencePolicy | None
    name: str = ""
    why: str = ""


def ordered_entries(objects: Iterable[Any]) -> tuple[PolicyEntry, ...]:
    """The policies of a cluster in order of selection: by priority, highest first, then by name."""
    return tuple(sorted(map(_read_entry, objects), key=lambda one: (-one.priority, one.name)))


def are_equivalent(before: Sequence[PolicyEntry], now: Sequence[PolicyEntry]) -> bool:
    """Whether two lists of policies have the same effect on every node; a policy's status has none."""
    return [_compared_fields(one) for one in before] == [_compared_fields(one) for one in now]


def _compared_fields(entry: PolicyEntry) -> tuple[object, ...]:
    spec = entry.policy.spec if entry.policy else None
    return entry.name, entry.priority, entry.selector, entry.violations, spec


def choose_policy(labels: Mapping[str, str], among: Sequence[PolicyEntry]) -> PolicyChoice:
    """The policy for a node with these labels; ``among`` as ``ordered_entries`` returns it."""
    found = next((one for one in among if one.selector.selects(labels)), None)
    if found is None:
        return PolicyChoice(policy=None, why="no FencePolicy selects the node")
    if found.policy is None:
        why = f"FencePolicy {found.name} selects the node, and is not valid: {'; '.join(found.violations)}"
        return PolicyChoice(policy=None, name=found.name, why=why)
    return PolicyChoice(policy=found.policy, name=found.name)


def policy_status(
    policy: Mapping[str, Any],
    entry: PolicyEntry,
    *,
    nodes: int,
    conditions: Sequence[Mapping[str, str]],
    told: Mapping[str, Sequence[Mapping[str, Any]]],
    now: datetime,
) -> dict[str, Any] | None:
    """The status that the object should have; None if it has it already.

    ``nodes``: the number of nodes that the policy applies to. ``conditions``: the conditions other than ``Accepted``,
    without the fields that all conditions share. ``told``: further fields of the status by name.
    """
    before = policy.get("status") or {}
    generation = (policy.get("metadata") or {}).get("generation", 0)
    accepted = {
        "type": ACCEPTED,
        "status": "True" if entry.policy else "False",
        "reason": ACCEPTED if entry.policy else INVALID,
        "message": "; ".join(entry.violations)[:32768] or "it is heeded",
    }
    dated = []
    for one in (accepted, *conditions):
        since = [old["lastTransitionTime"] for old in before.get("conditions") or () if _is_same_condition(old, one)]
        date = since[0] if since else now.strftime("%Y-%m-%dT%H:%M:%SZ")
        dated.append({**one, "observedGeneration": generation, "lastTransitionTime": date})
    lists = {field: [*entries] for field, entries in told.items()}
    after = {"conditions": dated, **lists, "nodes": nodes, "observedGeneration": generation}
    return None if after == before else after


def _is_same_condition(condition: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(condition.get(field) == wanted[field] for field in ("type", "status"))


def _read_entry(found: Any) -> PolicyEntry:
    try:
        policy = parse_policy(found)
    except InvalidInput as error:
        spec = _as_mapping(_as_mapping(found).get("spec"))
        return PolicyEntry(
            name=str(_as_mapping(_as_mapping(found).get("metadata")).get("name", "")),
            priority=_read_field(spec.get("priority"), Int32, 0),
            selector=_read_field(spec.get("nodeSelector"), LabelSelector, LabelSelector()),
            policy=None,
            violations=error.violations,
        )
    return PolicyEntry(
        name=policy.name, priority=policy.spec.priority, selector=policy.spec.node_selector, policy=policy
    )


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _read_field(value: Any, type_: Any, default: Any) -> Any:
    """A field as far as it can be read. A selector that cannot be read selects every node."""
    found, wrong = convert_readable(value, type_)
    return default if value is None or wrong else found
