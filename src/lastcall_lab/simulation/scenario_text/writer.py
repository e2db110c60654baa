"""A scenario as YAML, which ``reading`` reads back (pure)."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from lastcall import names
from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import ShutdownMode
from lastcall.model.traffic import TrafficSettings
from lastcall.model.watchdog import WatchdogSettings
from lastcall.report.formatting import format_exact_duration
from lastcall_lab.simulation.scenario import (
    CAPACITY,
    FailoverSettings,
    GuardSettings,
    LeaderSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioShutdownManager,
    ScenarioWorkload,
)
from lastcall_lab.simulation.scenario_text import sentences
from lastcall_lab.simulation.scenario_text.field_readers import Table
from lastcall_lab.simulation.scenario_text.scenario_fields import (
    CONTROLLER,
    GUARD,
    KIND,
    LASTCALL,
    LEADER,
    NEVER,
    TOP,
    WORKLOADS,
)

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
    "prepares",
}
_RATES = {"requests", "writes"}
_SETTINGS = {name: TOP[name] for name in ("shutdownManager", "propagationDelay", "bootsIn")}
_WIDTH = 120


def write_scenario(scenario: Scenario) -> str:
    """YAML that gives the same scenario when it is read, if reading can give it: times are whole nanoseconds.

    What YAML has no field for (``settled``, ``qps``, ``burst``, ``control_plane``) is not written.
    """
    return yaml.dump(
        _scenario_document(scenario), Dumper=_ScenarioDumper, sort_keys=False, allow_unicode=True, width=_WIDTH
    )


class _ScenarioDumper(yaml.SafeDumper):
    """Lists stand below their key, and what is in them on one line where that is short."""


def _represent_short(dumper: _ScenarioDumper, value: "_ShortMapping") -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", dict(value).items(), flow_style=True)


class _ShortMapping(dict[str, Any]):
    """A mapping on one line."""


_ScenarioDumper.add_representer(_ShortMapping, _represent_short)


def _scenario_document(scenario: Scenario) -> Mapping[str, Any]:
    return {
        "apiVersion": names.API_VERSION,
        "kind": KIND,
        "metadata": _ShortMapping(name=scenario.name),
        **_without_empty(description=scenario.description),
        "nodes": [_ShortMapping(_group_fields(one)) for one in scenario.nodes],
        **_without_empty(objects=list(scenario.objects)),
        **_without_empty(workloads=[_ShortMapping(_workload_fields(one)) for one in scenario.workloads]),
        "agent": _agent_fields(scenario.agent),
        **_changed_fields(scenario, Scenario(name=""), _SETTINGS),
        **_failover_fields(scenario.failover),
        **_guard_fields(scenario.guard),
        **_without_empty(timeline=_timeline_fields(scenario.timeline)),
        "lasts": format_exact_duration(scenario.lasts),
        **_without_empty(expect=[sentences.expectation_sentence(one) for one in scenario.expect]),
    }


def _without_empty(**fields: Any) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _changed_fields(facts: msgspec.Struct, plain: msgspec.Struct, table: Table) -> dict[str, Any]:
    """What is not as in ``plain``, under the names of the table; only what is text, number or the like."""
    found = {}
    for name, field in table.items():
        value = getattr(facts, field.attribute, None)
        if (
            value != getattr(plain, field.attribute, None)
            and (shown := _yaml_value(field.attribute, value)) is not None
        ):
            found[name] = shown
    return found


def _yaml_value(attribute: str, value: Any) -> Any:
    """As YAML has it; None for what is put together elsewhere."""
    if attribute in _DURATIONS:
        return format_exact_duration(value)
    if attribute in ("ends", "lives"):
        return NEVER if math.isinf(value) else format_exact_duration(value)
    if attribute in _RATES:
        return f"{value:g}/s"
    if attribute in ("min_available", "max_unavailable", "min_healthy"):
        return int(value) if value.isdecimal() else value
    if isinstance(value, ScenarioShutdownManager):
        return value.value
    if isinstance(value, LeaderSettings):
        return _ShortMapping(_changed_fields(value, LeaderSettings(), LEADER)) or True
    return value if isinstance(value, str | int | bool) else None


def _group_fields(group: NodeGroup) -> Mapping[str, Any]:
    own = {name: amount for name, amount in group.capacity.items() if CAPACITY.get(name) != amount}
    domains = {label: list(values) for label, values in group.domains.items()}
    several = _without_empty(domains=domains, labels=dict(group.labels), capacity=own)
    limit = _without_empty(delayLimit=format_exact_duration(group.delay_limit) if group.delay_limit else "")
    return {"name": group.name, "count": group.count, **several, **limit}


def _workload_fields(workload: ScenarioWorkload) -> Mapping[str, Any]:
    kind = next(name for name, field in WORKLOADS.items() if field.attribute == workload.kind.value)
    return {kind: workload.name, **_changed_fields(workload, ScenarioWorkload(kind=workload.kind, name=""), WORKLOADS)}


def _agent_fields(agent: AgentConfig | None) -> Mapping[str, Any]:
    """By priority, whatever it was written as."""
    if agent is None:
        return {}
    groups = [_ShortMapping(priority=one.priority, shutdownGracePeriodSeconds=one.seconds) for one in agent.groups]
    mode = "" if agent.mode is ShutdownMode.ENFORCE else agent.mode.value
    traffic = _traffic_fields(agent.traffic)
    own = _without_empty(shutdownGracePeriodByPodPriority=groups, mode=mode, traffic=traffic)
    return {**own, **_watchdog_fields(agent.watchdog)}


def _traffic_fields(traffic: TrafficSettings) -> Mapping[str, Any]:
    """Those that are not as ever."""
    said = {"limitSeconds": traffic.limit_seconds, "settleSeconds": traffic.settle_seconds}
    plain = TrafficSettings()
    usual = {"limitSeconds": plain.limit_seconds, "settleSeconds": plain.settle_seconds}
    return _ShortMapping({name: seconds for name, seconds in said.items() if seconds != usual[name]})


def _watchdog_fields(settings: WatchdogSettings | None) -> Mapping[str, Any]:
    if settings is None:
        return {}
    usual, given = (msgspec.to_builtins(one) for one in (WatchdogSettings(), settings))
    return {"watchdog": _ShortMapping({name: value for name, value in given.items() if value != usual.get(name)})}


def _failover_fields(failover: FailoverSettings | None) -> Mapping[str, Any]:
    if failover is None:
        return {}
    said = _changed_fields(failover, FailoverSettings(), CONTROLLER)
    return {"controller": _ShortMapping(said) if said else LASTCALL}


def _guard_fields(guard: GuardSettings | None) -> Mapping[str, Any]:
    if guard is None:
        return {}
    said = _changed_fields(guard, GuardSettings(), GUARD)
    return {"guard": _ShortMapping(said) if said else LASTCALL}


def _timeline_fields(events: Sequence[ScenarioEvent]) -> Mapping[str, Any]:
    """One sentence, or a list of them, for each time."""
    found: dict[str, list[str]] = {}
    for event in events:
        found.setdefault(format_exact_duration(event.at), []).append(sentences.event_sentence(event))
    return {at: _single_or_list(said) for at, said in found.items()}


def _single_or_list(said: Iterable[str]) -> Any:
    some = list(said)
    return some[0] if len(some) == 1 else some
