"""A scenario as YAML, which ``reading`` reads back (pure)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from lastcall import names
from lastcall.graceful.config import AgentConfig
from lastcall.lab.simulation.scenario import CAPACITY, Event, Failover, Leader, Manager, NodeGroup, Scenario, Workload
from lastcall.lab.simulation.wording import sentences
from lastcall.lab.simulation.wording.fields import Table
from lastcall.lab.simulation.wording.vocabulary import CONTROLLER, KIND, LASTCALL, LEADER, NEVER, TOP, WORKLOADS
from lastcall.model.shutdown import Mode
from lastcall.model.watchdog import WatchdogSettings
from lastcall.report.words import exactly

_DURATIONS = {
    "propagation",
    "boot",
    "lasts",
    "starts",
    "ready",
    "pre_stop",
    "handover",
    "election",
    "suspect_after",
    "settle",
}
_RATES = {"requests", "writes"}
_SETTINGS = {name: TOP[name] for name in ("shutdownManager", "propagationDelay", "bootsIn")}
_WIDTH = 120


def write(scenario: Scenario) -> str:
    """YAML that gives the same scenario when it is read, if reading can give it: times are whole nanoseconds.

    What YAML has no field for (``settled``, ``qps``, ``burst``, ``control_plane``) is not written.
    """
    return yaml.dump(_document(scenario), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)


class _Dumper(yaml.SafeDumper):
    """Lists stand below their key, and what is in them on one line where that is short."""


def _one_line(dumper: _Dumper, value: "_Short") -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", dict(value).items(), flow_style=True)


class _Short(dict[str, Any]):
    """A mapping on one line."""


_Dumper.add_representer(_Short, _one_line)


def _document(scenario: Scenario) -> Mapping[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": KIND,
        "metadata": _Short(name=scenario.name),
        **_filled(description=scenario.description),
        "nodes": [_Short(_group(one)) for one in scenario.nodes],
        **_filled(objects=list(scenario.objects)),
        **_filled(workloads=[_Short(_workload(one)) for one in scenario.workloads]),
        "agent": _agent(scenario.agent),
        **_said(scenario, Scenario(name=""), _SETTINGS),
        **_controller(scenario.failover),
        **_filled(timeline=_timeline(scenario.timeline)),
        "lasts": exactly(scenario.lasts),
        **_filled(expect=[sentences.of_expectation(one) for one in scenario.expect]),
    }


def _filled(**fields: Any) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _said(facts: msgspec.Struct, plain: msgspec.Struct, table: Table) -> dict[str, Any]:
    """What is not as in ``plain``, under the names of the table; only what is text, number or the like."""
    found = {}
    for name, field in table.items():
        value = getattr(facts, field.attribute, None)
        if value != getattr(plain, field.attribute, None) and (shown := _shown(field.attribute, value)) is not None:
            found[name] = shown
    return found


def _shown(attribute: str, value: Any) -> Any:
    """As YAML has it; None for what is put together elsewhere."""
    if attribute in _DURATIONS:
        return exactly(value)
    if attribute in ("ends", "lives"):
        return NEVER if math.isinf(value) else exactly(value)
    if attribute in _RATES:
        return f"{value:g}/s"
    if attribute in ("min_available", "max_unavailable", "min_healthy"):
        return int(value) if value.isdecimal() else value
    if isinstance(value, Manager):
        return value.value
    if isinstance(value, Leader):
        return _Short(_said(value, Leader(), LEADER)) or True
    return value if isinstance(value, str | int | bool) else None


def _group(group: NodeGroup) -> Mapping[str, Any]:
    own = {name: amount for name, amount in group.capacity.items() if CAPACITY.get(name) != amount}
    domains = {label: list(values) for label, values in group.domains.items()}
    several = _filled(domains=domains, labels=dict(group.labels), capacity=own)
    limit = _filled(delayLimit=exactly(group.delay_limit) if group.delay_limit else "")
    return {"name": group.name, "count": group.count, **several, **limit}


def _workload(workload: Workload) -> Mapping[str, Any]:
    kind = next(name for name, field in WORKLOADS.items() if field.attribute == workload.kind.value)
    return {kind: workload.name, **_said(workload, Workload(kind=workload.kind, name=""), WORKLOADS)}


def _agent(agent: AgentConfig | None) -> Mapping[str, Any]:
    """By priority, whatever it was written as."""
    if agent is None:
        return {}
    groups = [_Short(priority=one.priority, shutdownGracePeriodSeconds=one.seconds) for one in agent.groups]
    mode = "" if agent.mode is Mode.ENFORCE else agent.mode.value
    return {**_filled(shutdownGracePeriodByPodPriority=groups, mode=mode), **_watchdog(agent.watchdog)}


def _watchdog(settings: WatchdogSettings | None) -> Mapping[str, Any]:
    if settings is None:
        return {}
    usual, given = (msgspec.to_builtins(one) for one in (WatchdogSettings(), settings))
    return {"watchdog": _Short({name: value for name, value in given.items() if value != usual.get(name)})}


def _controller(failover: Failover | None) -> Mapping[str, Any]:
    if failover is None:
        return {}
    said = _said(failover, Failover(), CONTROLLER)
    return {"controller": _Short(said) if said else LASTCALL}


def _timeline(events: Sequence[Event]) -> Mapping[str, Any]:
    """One sentence, or a list of them, for each time."""
    found: dict[str, list[str]] = {}
    for event in events:
        found.setdefault(exactly(event.at), []).append(sentences.of_event(event))
    return {at: _alone(said) for at, said in found.items()}


def _alone(said: Iterable[str]) -> Any:
    some = list(said)
    return some[0] if len(some) == 1 else some
