"""A seed's story for ``lastcall drain``: drains of one or two nodes, and faults of theirs and of everything beside them (pure)."""

from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec.structs import replace

from lastcall.graceful.config import AgentConfig
from lastcall.manifests.guard_webhooks import FAIL, IGNORE
from lastcall.model.shutdown import PhasePlan
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab.simulation.scenario import (
    FailoverSettings,
    GuardSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.seeds import random_of

DESCRIPTION = "Three machines that are drained, with budgets, guards, failovers and reboots, and faults at every step."

STORM = 60.0
"""Seconds in which everything begins; then everything is uncordoned."""

QUIET = 110.0
"""Seconds afterwards in which everything must come to its end."""

_SILENCE = 170.0
"""So much longer it takes where a watch has gone silent: its program lists again when the watch times out."""

_DRAIN = {Verb.KILL_DRAIN: 12, Verb.UNCORDON: 3, Verb.CORDON: 3, Verb.DRAIN: 2}
_MACHINES = {Verb.REBOOT: 3, Verb.POWER_CUT: 2, Verb.PARTITION: 2, Verb.HANG: 1, Verb.KILL_AGENT: 1}
_WEATHER = {
    Verb.API_DOWN: 3,
    Verb.API_RESTART: 1,
    Verb.API_ERRORS: 5,
    Verb.API_SLOW: 2,
    Verb.API_COMPACT: 1,
    Verb.WATCH_LATE: 2,
    Verb.WATCH_DOUBLE: 1,
    Verb.WATCH_TORN: 2,
    Verb.WATCH_SILENT: 2,
    Verb.REQUESTS_LOST: 2,
    Verb.ANSWERS_LOST: 3,
    Verb.STALE_LISTS: 2,
    Verb.KILL_CONTROLLERS: 2,
    Verb.PAUSE_CONTROLLERS: 2,
}
"""How often each comes, in proportion."""

_GUARDS = {
    Verb.KILL_GUARD: 4,
    Verb.STOP_GUARDS: 4,
    Verb.APPS_STALL: 2,
    Verb.APPS_SILENT: 2,
    Verb.APPS_SLOW: 2,
    Verb.APPS_FLAP: 2,
    Verb.APPS_FORGET: 2,
}
"""The same where there are guards."""

VERBS = (Verb.LASTCALL_DRAIN, Verb.TAKE_RIGHT, *_DRAIN, *_MACHINES, *_WEATHER, *_GUARDS, Verb.APPS_LIE)
"""All that can happen."""

_AMOUNTS = {
    Verb.API_ERRORS: (0.05, 0.2, 0.5),
    Verb.API_SLOW: (0.1, 1.0, 4.0),
    Verb.WATCH_LATE: (0.5, 3.0, 10.0),
    Verb.WATCH_DOUBLE: (0.5,),
    Verb.WATCH_TORN: (0.2,),
    Verb.STALE_LISTS: (1.0, 5.0),
    Verb.APPS_SLOW: (0.5, 8.0),
}
_AT_ONCE = (Verb.API_COMPACT, Verb.UNCORDON, Verb.APPS_FORGET)
_GUARDED = 0.16
"""The part of stories that have guards."""
_SURGING = 0.12
"""The part in which a budget demands all pods of a workload, and drains may give it one more."""
_LYING = 0.3
"""The part of those with guards in which applications lie."""
_DENIED = 0.2
"""The part in which drains lose a right, for a time or for good."""
_RIGHTS = (
    "create pods/eviction",
    "delete pods",
    "get nodes",
    "patch nodes",
    "patch nodes/status",
    "list nodes",
    "watch nodes",
    "list pods",
    "watch pods",
    "list poddisruptionbudgets",
    "watch poddisruptionbudgets",
    "get leases",
    "create leases",
    "update leases",
    "delete leases",
    "get namespaces",
    "create events",
    "get deployments",
    "patch deployments",
)
"""Those of ``lastcall-drainer`` that a drain needs after its plan, and two of ``--surge``."""
_SILENT = (Verb.WATCH_SILENT, Verb.ANSWERS_LOST)
_LASTS = (1.0, 5.0, 25.0)


def generate_scenario(seed: int) -> Scenario:
    """The story of a seed."""
    random = random_of(str(seed), "drain chaos")
    nodes = NodeGroup(count=3)
    drains = _random_drains(random, nodes.node_names)
    count = random.choice((0, 1, 1, 2, 2, 3))
    faults = [_random_fault(random, random.choice(drains), nodes.node_names) for _ in range(count)]
    workloads, guard = _random_workloads(random), None
    guarding = random_of(str(seed), "guards")
    if guarding.random() < _GUARDED:
        guard = GuardSettings(replicas=guarding.choice((1, 1, 2)), failure_policy=guarding.choice((FAIL, FAIL, IGNORE)))
        workloads = (_random_guarded_workload(guarding), *workloads[1:])
        faults += [_random_guard_fault(guarding, guarding.choice(drains)) for _ in range(guarding.choice((0, 1, 2)))]
        faults += _random_lies(random_of(str(seed), "lies"), drains)
    faults += _random_denials(random_of(str(seed), "rights"), drains)
    surging = random_of(str(seed), "surges")
    if guard is None and surging.random() < _SURGING:
        web = replace(workloads[0], max_unavailable="", min_available=str(workloads[0].replicas))
        workloads = (web, *workloads[1:])
        drains = [replace(one, surge=True) for one in drains]
    end = ScenarioEvent(at=STORM + 15.0, verb=Verb.UNCORDON, nodes=("all nodes",))
    failover = FailoverSettings(suspect_after=20.0, settle=1.0, min_healthy="1", power_on=True)
    return Scenario(
        name=f"drain-chaos-{seed}",
        description=DESCRIPTION,
        nodes=(nodes,),
        workloads=workloads,
        agent=AgentConfig(
            kind=AGENT_CONFIGURATION,
            groups=(PhasePlan(priority=0, seconds=10), PhasePlan(priority=2_000_000_000, seconds=5)),
        ),
        failover=failover if random.random() < 0.3 else None,
        guard=guard,
        boot=5.0,
        timeline=tuple(sorted((*drains, *faults, end), key=lambda event: event.at)),
        lasts=STORM + QUIET + (_SILENCE if any(one.verb in _SILENT for one in faults) else 0.0),
    )


def _random_workloads(random: Random) -> tuple[ScenarioWorkload, ...]:
    def budget() -> dict[str, Any]:
        return dict((random.choice((("max_unavailable", "1"), ("min_available", "50%"), ("max_unavailable", "0"))),))

    ends = random.choice((0.0, 2.0, 8.0))
    web = ScenarioWorkload(
        kind=ScenarioWorkloadKind.DEPLOYMENT,
        name="web",
        replicas=random.choice((2, 3, 4)),
        grace=10,
        ready=random.choice((0.0, 3.0)),
        ends=ends,
        **budget(),
    )
    kind, name = ScenarioWorkloadKind.STATEFUL_SET, "db"
    db = ScenarioWorkload(
        kind=kind, name=name, replicas=2, grace=10, ends=ends, volume=random.random() < 0.5, **budget()
    )
    logs = ScenarioWorkload(kind=ScenarioWorkloadKind.DAEMON_SET, name="logs", priority_class="system-node-critical")
    return (web, db, logs)


def _random_guarded_workload(random: Random) -> ScenarioWorkload:
    """In the place of ``web``; it may have a budget too."""
    kind = random.choice((ScenarioWorkloadKind.STATEFUL_SET, ScenarioWorkloadKind.DEPLOYMENT))
    return ScenarioWorkload(
        kind=kind,
        name="queue",
        namespace="shop",
        replicas=random.choice((2, 3)),
        grace=10,
        prepares=random.choice((0.5, 5.0, 20.0, 100.0)),
        max_unavailable=random.choice(("", "", "1")),
    )


def _random_guard_fault(random: Random, near: ScenarioEvent) -> ScenarioEvent:
    """Around the beginning of a drain, or while it is under way."""
    verb = random.choices(list(_GUARDS), list(_GUARDS.values()))[0]
    at = max(0.5, _random_time(random, *random.choice(((near.at - 5.0, near.at), (near.at, near.at + 30.0)))))
    amount = random.choice(_AMOUNTS.get(verb, (0.0,)))
    if verb is Verb.KILL_GUARD and random.random() < 0.7:
        amount = float(random.randint(1, 300))
    lasts = None if verb in _AT_ONCE else random.choice(_LASTS)
    return ScenarioEvent(at=at, verb=verb, lasts=lasts, amount=amount)


def _random_lies(random: Random, drains: Sequence[ScenarioEvent]) -> list[ScenarioEvent]:
    if random.random() >= _LYING:
        return []
    near = random.choice(drains)
    at = max(0.5, _random_time(random, near.at - 5.0, near.at + 30.0))
    return [ScenarioEvent(at=at, verb=Verb.APPS_LIE, lasts=random.choice(_LASTS))]


def _random_denials(random: Random, drains: Sequence[ScenarioEvent]) -> list[ScenarioEvent]:
    """From the beginning of a drain, or in its middle."""
    if random.random() >= _DENIED:
        return []
    near = random.choice(drains)
    at = _random_time(random, *random.choice(((near.at, near.at + 0.5), (near.at, near.at + 25.0))))
    lasts = random.choice((*_LASTS, None))
    return [ScenarioEvent(at=at, verb=Verb.TAKE_RIGHT, right=random.choice(_RIGHTS), lasts=lasts)]


def _random_drains(random: Random, names: Sequence[str]) -> list[ScenarioEvent]:
    """One or two; the second is of the same nodes, of others, or of both."""
    found, at = [], _random_time(random, 1.0, 8.0)
    for _ in range(random.choice((1, 1, 2))):
        nodes = tuple(sorted(random.sample(names, random.choice((1, 1, 2)))))
        timeout, policy = random.choice(((50.0, "stop"), (50.0, "stop"), (25.0, "delete"), (25.0, "force")))
        found.append(ScenarioEvent(at=at, verb=Verb.LASTCALL_DRAIN, nodes=nodes, amount=timeout, on_timeout=policy))
        at = _random_time(random, at, at + 25.0)
    return found


def _random_fault(random: Random, near: ScenarioEvent, names: Sequence[str]) -> ScenarioEvent:
    """Mostly while a drain is under way; sometimes before it."""
    table = random.choice((_DRAIN, _DRAIN, _MACHINES, _WEATHER, _WEATHER))
    verb = random.choices(list(table), list(table.values()))[0]
    spans = ((near.at, near.at + 0.5), (near.at, near.at + 5.0), (near.at, near.at + 25.0), (near.at - 5.0, near.at))
    at = max(0.5, _random_time(random, *random.choice(spans)))
    amount = random.choice(_AMOUNTS.get(verb, (0.0,)))
    if verb is Verb.KILL_DRAIN and random.random() < 0.7:
        amount, at = float(random.randint(1, random.choice((30, 150, 600)))), round(near.at + 0.001, 3)
    nodes: tuple[str, ...] = ()
    if table is not _WEATHER and verb is not Verb.KILL_DRAIN:
        nodes = (random.choice((*near.nodes, random.choice(names))),)
    lasts = None if verb in _AT_ONCE else random.choice(_LASTS)
    return ScenarioEvent(at=at, verb=verb, nodes=nodes, lasts=lasts, amount=amount)


def _random_time(random: Random, first: float, last: float) -> float:
    """To the millisecond, so that it can be written down."""
    return round(random.uniform(first, last), 3)
