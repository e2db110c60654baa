"""A seed's story for an agent beside a kubelet: shutdowns and cancellations, and faults at each of their steps (pure)."""

from collections.abc import Sequence
from random import Random
from typing import Any

from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import PhasePlan
from lastcall.model.traffic import TrafficSettings
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab.simulation.scenario import (
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioShutdownManager,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.seeds import random_of

DESCRIPTION = (
    "Two or three machines with an agent beside the kubelet, their shutdowns, and faults at every step of these."
)

STORM = 110.0
"""Seconds in which everything begins."""

QUIET = 330.0
"""Seconds afterwards in which everything must come to its end: the longest fault, and five minutes of Kubernetes."""

_NODES = ("node-1", "node-2")
"""The machines to which something happens; a third one has only what the others lose."""

FAULTS = {
    Verb.KILL_AGENT: 14,
    Verb.START_KUBELET: 6,
    Verb.KILL_KUBELET: 3,
    Verb.LOSE_BUS: 4,
    Verb.RESTART_LOGIND: 1,
    Verb.KILL_HOLDER: 1,
    Verb.RUNTIME_AWAY: 2,
    Verb.DISK_FULL: 2,
    Verb.POWER_CUT: 2,
    Verb.PARTITION: 2,
    Verb.CORDON: 4,
    Verb.DRAIN: 2,
    Verb.API_DOWN: 4,
    Verb.API_RESTART: 1,
    Verb.API_COMPACT: 1,
    Verb.API_ERRORS: 5,
    Verb.API_SLOW: 3,
    Verb.REQUESTS_LOST: 4,
    Verb.ANSWERS_LOST: 4,
    Verb.WATCH_LATE: 1,
    Verb.KILL_CONTROLLERS: 1,
    Verb.PAUSE_CONTROLLERS: 1,
}
"""How often each comes, in proportion."""

VERBS = (Verb.REBOOT, Verb.CANCEL, *FAULTS)
"""All that can happen."""

_AT_ONCE = {Verb.KILL_HOLDER, Verb.RESTART_LOGIND, Verb.API_COMPACT, Verb.START_KUBELET, Verb.KILL_KUBELET}
_OF_ALL = {Verb.API_DOWN, Verb.API_RESTART, Verb.API_COMPACT, Verb.KILL_CONTROLLERS, Verb.PAUSE_CONTROLLERS}
_OF_SOME = {Verb.API_ERRORS, Verb.API_SLOW, Verb.REQUESTS_LOST, Verb.ANSWERS_LOST, Verb.WATCH_LATE}
"""What can be so for one machine, or for all programs."""

_LASTS = (0.3, 1.0, 5.0, 25.0)
_AMOUNTS = {
    Verb.API_ERRORS: (0.2, 0.5, 1.0),
    Verb.API_SLOW: (0.1, 0.4, 3.0),
    Verb.WATCH_LATE: (0.5, 3.0),
}


def generate_scenario(seed: int) -> Scenario:
    """The story of a seed."""
    random = random_of(str(seed), "kubelet chaos")
    low, high = random.choice(((20, 8), (10, 5), (40, 10), (6, 3)))
    ladder = random.choice(((), (PhasePlan(priority=10_000, seconds=low),)))
    groups = (PhasePlan(priority=0, seconds=low), *ladder, PhasePlan(priority=2_000_000_000, seconds=high))
    traffic = random.choice((TrafficSettings(), TrafficSettings(), TrafficSettings(limit_seconds=0.0)))
    shutdowns = _random_shutdowns(random)
    pressed = [one for one in shutdowns if one.verb is Verb.REBOOT]
    faults = [_random_fault(random, random.choice(pressed)) for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4)))]
    return Scenario(
        name=f"kubelet-chaos-{seed}",
        description=DESCRIPTION,
        nodes=(NodeGroup(count=random.choice((2, 2, 3))),),
        objects=_random_objects(random),
        workloads=_random_workloads(random),
        agent=AgentConfig(kind=AGENT_CONFIGURATION, groups=groups, traffic=traffic),
        manager=ScenarioShutdownManager.BESIDE_KUBELET,
        boot=5.0,
        timeline=tuple(sorted((*shutdowns, *faults), key=lambda event: event.at)),
        lasts=STORM + QUIET,
    )


def _random_objects(random: Random) -> tuple[dict[str, Any], ...]:
    """A class at the edge of a phase; often a Job that does not count what is disrupted, and a pod that nobody replaces."""
    found: list[dict[str, Any]] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "storage"},
            "value": 10_000,
        }
    ]
    container = {"name": "main", "image": "work"}
    if random.random() < 0.5:
        rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
        labels = {"ignores-disruption": "true"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "restartPolicy": "Never"}}
        spec = {"template": template, "backoffLimit": 20, "podFailurePolicy": {"rules": [rule]}}
        found.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata("careful"), "spec": spec})
    if random.random() < 0.3:
        found.append(
            {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata("bare"), "spec": {"containers": [container]}}
        )
    return tuple(found)


def _metadata(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "default"}


def _random_workloads(random: Random) -> tuple[ScenarioWorkload, ...]:
    def one(kind: ScenarioWorkloadKind, name: str, **more: Any) -> ScenarioWorkload:
        return ScenarioWorkload(
            kind=kind,
            name=name,
            grace=random.choice((1, 5, 15, 40)),
            starts=random.choice((0.2, 2.0)),
            ready=random.choice((0.0, 2.0)),
            pre_stop=random.choice((0.0, 0.0, 1.0, 4.0, 30.0)),
            ends=random.choice((0.0, 0.5, 3.0, float("inf"))),
            **more,
        )

    disks: Sequence[dict[str, Any]] = ({"volume": True, "writes": 0.2}, {}, {})
    found = [
        one(ScenarioWorkloadKind.DEPLOYMENT, "web", replicas=random.randint(1, 3), requests=10.0),
        one(ScenarioWorkloadKind.STATEFUL_SET, "db", replicas=random.randint(1, 2), **random.choice(disks)),
        one(ScenarioWorkloadKind.DAEMON_SET, "logs", priority_class="system-node-critical"),
    ]
    if random.random() < 0.4:
        found.append(one(ScenarioWorkloadKind.DAEMON_SET, "tools", requests=random.choice((0.0, 5.0))))
    if random.random() < 0.4:
        found.append(one(ScenarioWorkloadKind.DEPLOYMENT, "store", replicas=2, priority_class="storage"))
    return tuple(found)


def _random_shutdowns(random: Random) -> list[ScenarioEvent]:
    """One or two, often cancelled, and then often begun again."""
    found: list[ScenarioEvent] = []
    for _ in range(random.choice((1, 1, 2))):
        at = _random_time(random, 1.0, STORM * 0.6)
        node = random.choice(_NODES)
        found.append(ScenarioEvent(at=at, verb=Verb.REBOOT, nodes=(node,), lasts=random.choice((1.0, 10.0, 40.0))))
        if random.random() < 0.4:
            off = round(at + random.choice((0.0, 0.05, 0.3, 2.0, 6.0, 15.0)), 3)
            found.append(ScenarioEvent(at=off, verb=Verb.CANCEL, nodes=(node,)))
            if random.random() < 0.4:
                again = round(off + random.choice((0.1, 1.0, 5.0)), 3)
                found.append(ScenarioEvent(at=again, verb=Verb.REBOOT, nodes=(node,), lasts=10.0))
    return found


def _random_fault(random: Random, near: ScenarioEvent) -> ScenarioEvent:
    """Mostly soon after a button; sometimes before it, or when the machine boots."""
    verb = random.choices(list(FAULTS), list(FAULTS.values()))[0]
    spans = ((near.at, near.at + 0.5), (near.at, near.at + 5.0), (near.at, near.at + 30.0), (near.at - 10.0, near.at))
    at = max(0.5, _random_time(random, *random.choice(spans)))
    amount = random.choice(_AMOUNTS.get(verb, (0.0,)))
    if verb is Verb.KILL_AGENT and random.random() < 0.7:
        amount, at = float(random.randint(1, random.choice((20, 80, 300)))), near.at
    local = verb not in _OF_ALL and not (verb in _OF_SOME and random.random() < 0.5)
    lasts = None if verb in _AT_ONCE else random.choice(_LASTS)
    return ScenarioEvent(at=at, verb=verb, nodes=near.nodes if local else (), lasts=lasts, amount=amount)


def _random_time(random: Random, first: float, last: float) -> float:
    """To the millisecond, so that it can be written down."""
    return round(random.uniform(first, last), 3)
