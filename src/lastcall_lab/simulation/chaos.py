"""A seed's story: three to seven machines, a few workloads, shutdowns and faults, and quiet in the end (pure)."""

from collections.abc import Mapping, Sequence
from random import Random

from msgspec.structs import replace

from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import PhasePlan
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab.simulation.scenario import (
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.seeds import random_of

DESCRIPTION = "Three to seven machines, a few workloads, shutdowns and faults, all by chance."

STORM = 240.0
"""Seconds in which everything happens."""

QUIET = 900.0
"""Seconds afterwards in which everything must come to its end."""

_NODES = ("node-1", "node-2", "node-3")
"""The machines that a story is told of. In a larger cluster each of them stands for one or more."""

_COUNTS = (3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7)
"""How many machines there are: three mostly, since every further one costs time."""

_ZONES: Sequence[dict[str, tuple[str, ...]]] = ({}, {"topology.kubernetes.io/zone": ("a", "b", "c")})

FAULTS = {
    Verb.KILL_AGENT: 12,
    Verb.KILL_HOLDER: 1,
    Verb.RESTART_LOGIND: 1,
    Verb.LOSE_BUS: 1,
    Verb.RUNTIME_AWAY: 3,
    Verb.DISK_FULL: 3,
    Verb.CLOCK_STEP: 1,
    Verb.CLOCK_DRIFT: 1,
    Verb.DISK_SLOW: 2,
    Verb.POWER_CUT: 2,
    Verb.HANG: 2,
    Verb.PARTITION: 3,
    Verb.NO_STORAGE: 1,
    Verb.DRAIN: 4,
    Verb.API_DOWN: 3,
    Verb.API_RESTART: 1,
    Verb.API_COMPACT: 1,
    Verb.ETCD_RESTORE: 1,
    Verb.API_ERRORS: 5,
    Verb.API_SLOW: 2,
    Verb.REQUESTS_LOST: 2,
    Verb.ANSWERS_LOST: 2,
    Verb.STALE_STARTS: 2,
    Verb.API_TORN: 2,
    Verb.WATCH_LATE: 2,
    Verb.WATCH_DOUBLE: 2,
    Verb.WATCH_TORN: 1,
    Verb.WATCH_LOST: 2,
    Verb.WATCH_SILENT: 2,
    Verb.KILL_CONTROLLERS: 2,
    Verb.PAUSE_CONTROLLERS: 2,
}
"""How often each comes, in proportion."""

VERBS = (Verb.REBOOT, Verb.CANCEL, *FAULTS)
"""All that can happen."""

_AT_ONCE = {Verb.KILL_HOLDER, Verb.RESTART_LOGIND, Verb.API_COMPACT}

_WEATHER = {
    Verb.API_ERRORS,
    Verb.REQUESTS_LOST,
    Verb.ANSWERS_LOST,
    Verb.STALE_STARTS,
    Verb.API_SLOW,
    Verb.API_TORN,
    Verb.WATCH_LATE,
    Verb.WATCH_DOUBLE,
    Verb.WATCH_TORN,
    Verb.WATCH_LOST,
    Verb.WATCH_SILENT,
}
"""What can be so for one machine, or for all programs."""

_SHORT = (0.5, 2.0, 5.0, 30.0)
_LASTS = (1.0, 5.0, 30.0, 90.0)
_LONG = (*_LASTS, 450.0, 450.0)
"""Seconds of a fault. The longest makes Kubernetes move pods: it waits for some 50 s, and then 300 s."""

_MAY_BE_LONG = {Verb.POWER_CUT, Verb.HANG, Verb.PARTITION}

_AMOUNTS = {
    Verb.API_ERRORS: (0.05, 0.2, 0.5),
    Verb.API_SLOW: (0.1, 1.0, 5.0),
    Verb.API_TORN: (0.05, 0.2),
    Verb.WATCH_LATE: (0.5, 3.0, 10.0),
    Verb.WATCH_DOUBLE: (0.5,),
    Verb.WATCH_TORN: (0.2,),
    Verb.WATCH_LOST: (0.05, 0.3),
    Verb.CLOCK_STEP: (-3600.0, -5.0, 30.0, 86400.0),
    Verb.CLOCK_DRIFT: (-30.0, 2.0, 60.0),
    Verb.DISK_SLOW: (0.05, 0.5, 5.0),
    Verb.STALE_STARTS: (1.0, 5.0, 15.0),
}


def generate_scenario(seed: int) -> Scenario:
    """The story of a seed."""
    random = random_of(str(seed), "chaos")
    ladder = random_of(str(seed), "chaos/phases")
    groups = _random_phases(random, ladder)
    shutdowns = _random_shutdowns(random)
    timeline = [*shutdowns, *_random_faults(random, [one for one in shutdowns if one.verb is Verb.REBOOT])]
    timeline += _program_restarts(random_of(str(seed), "chaos/starts"), timeline)
    story = Scenario(
        name=f"chaos-{seed}",
        description=DESCRIPTION,
        nodes=(NodeGroup(count=len(_NODES), delay_limit=_random_delay_limit(ladder, groups)),),
        objects=tuple(_priority_class(name, value) for name, value in CLASSES.items()),
        workloads=(*_random_workloads(random), *_edge_priority_workloads(ladder)),
        agent=AgentConfig(kind=AGENT_CONFIGURATION, groups=groups),
        boot=random.choice((5.0, 30.0)),
        timeline=tuple(sorted(timeline, key=lambda event: event.at)),
        lasts=STORM + QUIET,
    )
    return _enlarge_cluster(random_of(str(seed), "chaos/machines"), story)


def _enlarge_cluster(random: Random, story: Scenario) -> Scenario:
    """The same story where there are more machines, in zones or in none; as it is if there are no more.

    Each machine of the story stands for one or more. Shutdowns come to all of these at once, as does one fault in three;
    the others come to one of them.
    """
    machines = replace(story.nodes[0], count=random.choice(_COUNTS), domains=random.choice(_ZONES))
    if machines.count == len(_NODES):
        return story
    names = random.sample(machines.node_names, machines.count)
    roles = dict(zip(names, [*_NODES, *random.choices(_NODES, k=machines.count - len(_NODES))], strict=True))
    stands_for = {node: tuple(name for name in machines.node_names if roles[name] == node) for node in _NODES}
    return replace(
        story,
        nodes=(machines,),
        workloads=tuple(_add_replicas(one, machines.count - len(_NODES)) for one in story.workloads),
        timeline=tuple(_widen_targets(random, event, stands_for) for event in story.timeline),
    )


def _add_replicas(workload: ScenarioWorkload, more: int) -> ScenarioWorkload:
    """Also with the pods for as many machines ``more``."""
    if workload.kind in (ScenarioWorkloadKind.DEPLOYMENT, ScenarioWorkloadKind.STATEFUL_SET):
        return replace(workload, replicas=workload.replicas + more)
    return workload


def _widen_targets(random: Random, event: ScenarioEvent, stands_for: Mapping[str, tuple[str, ...]]) -> ScenarioEvent:
    """What happens to the machines that those of the story stand for."""
    if event.verb in (Verb.REBOOT, Verb.CANCEL) or random.random() < 1 / 3:
        return replace(event, nodes=tuple(name for node in event.nodes for name in stands_for[node]))
    return replace(event, nodes=tuple(random.choice(stands_for[node]) for node in event.nodes))


def _random_phases(random: Random, ladder: Random) -> tuple[PhasePlan, ...]:
    """Two phases, or a ladder whose steps are the very priorities of the classes."""
    low, high = random.choice(((30, 10), (10, 5), (60, 20), (5, 2)))
    steps = ((), (PhasePlan(priority=10_000, seconds=low),))
    critical = PhasePlan(priority=2_000_000_000, seconds=high)
    return (PhasePlan(priority=0, seconds=low), *ladder.choice(steps), critical)


def _random_delay_limit(random: Random, groups: Sequence[PhasePlan]) -> float:
    """Mostly none; else less than the phases ask for, or even less than the critical ones do."""
    if random.random() < 0.7:
        return 0.0
    return random.choice((round(sum(one.seconds for one in groups) * 0.6), groups[-1].seconds, 1))


CLASSES = {"low": -10, "storage": 10_000}
"""Priority classes: below every phase, and at the very edge of one."""


def _priority_class(name: str, value: int) -> dict[str, object]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def _edge_priority_workloads(random: Random) -> Sequence[ScenarioWorkload]:
    """Mostly one at the edge of a phase, which takes its time."""
    if random.random() < 0.3:
        return ()
    priority_class = random.choice(("low", "storage", "storage", "system-cluster-critical"))
    grace, ends = random.choice((5, 30, 60)), random.choice((1.0, 5.0, float("inf")))
    return (
        ScenarioWorkload(
            kind=ScenarioWorkloadKind.DEPLOYMENT,
            name="more",
            replicas=3,
            priority_class=priority_class,
            grace=grace,
            ends=ends,
        ),
    )


_DISKS: Sequence[Mapping[str, object]] = ({"volume": True, "writes": 0.2}, {"volume": True, "writes": 0.2}, {})


def _random_workloads(random: Random) -> Sequence[ScenarioWorkload]:
    def one(kind: ScenarioWorkloadKind, name: str, **more: object) -> ScenarioWorkload:
        return ScenarioWorkload(
            kind=kind,
            name=name,
            grace=random.choice((1, 10, 30, 60)),
            starts=random.choice((0.2, 2.0, 10.0)),
            ready=random.choice((0.0, 3.0)),
            pre_stop=random.choice((0.0, 0.0, 2.0, 8.0, 45.0)),
            ends=random.choice((0.0, 1.0, 5.0, float("inf"))),
            **more,  # type: ignore[arg-type]  # the fields of a Workload
        )

    found = [
        one(ScenarioWorkloadKind.DEPLOYMENT, "web", replicas=random.randint(1, 4), requests=10.0, max_unavailable="1"),
        one(ScenarioWorkloadKind.STATEFUL_SET, "db", replicas=random.randint(1, 3), **random.choice(_DISKS)),
        one(ScenarioWorkloadKind.DAEMON_SET, "logs", priority_class="system-node-critical"),
    ]
    if random.random() < 0.3:
        found.append(one(ScenarioWorkloadKind.JOB, "batch", replicas=2, lives=random.choice((30.0, 200.0))))
    return found


def _random_shutdowns(random: Random) -> Sequence[ScenarioEvent]:
    """Often of the same machine: what an earlier one has left behind is there then. Some at the same time, too."""
    found: list[ScenarioEvent] = []
    for _ in range(random.choice((1, 1, 2, 3))):
        node = found[0].nodes[0] if found and random.random() < 0.5 else random.choice(_NODES)
        together = found and random.random() < 0.2
        at = found[0].at if together else _random_time(random, 1, STORM * 0.7)
        found.append(ScenarioEvent(at=at, verb=Verb.REBOOT, nodes=(node,), lasts=random.choice((1.0, 20.0, 60.0))))
        if random.random() < 0.3:
            found += _random_cancellation(random, found[-1])
    return found


def _random_cancellation(random: Random, shutdown: ScenarioEvent) -> Sequence[ScenarioEvent]:
    """And maybe soon begun again."""
    off = round(shutdown.at + random.choice((0.0, 0.5, 4.0, 12.0)), 3)
    found = [ScenarioEvent(at=off, verb=Verb.CANCEL, nodes=shutdown.nodes)]
    if random.random() < 0.5:
        found.append(replace(shutdown, at=round(off + random.choice((0.5, 5.0, 15.0)), 3)))
    return found


def _random_faults(random: Random, shutdowns: Sequence[ScenarioEvent]) -> Sequence[ScenarioEvent]:
    """Half of them at any time and place, the others where and when a machine goes down, or shortly before."""
    verbs = random.choices(list(FAULTS), list(FAULTS.values()), k=random.choice((0, 1, 2, 3, 4, 6)))
    found = [_random_fault(random, verb, random.choice(shutdowns) if random.random() < 0.5 else None) for verb in verbs]
    return [
        *found,
        *(_accompanying_fault(random, one) for one in found if one.verb in _WEATHER and random.random() < 0.5),
    ]


def _accompanying_fault(random: Random, fault: ScenarioEvent) -> ScenarioEvent:
    """What is bad is often so in two ways; or it is all over at once, and everybody has to ask anew."""
    if random.random() < 0.5:
        end = fault.at + min(fault.lasts or 0.0, 30.0)
        return ScenarioEvent(at=_random_time(random, fault.at, end), verb=Verb.API_COMPACT)
    verb = random.choice(sorted(_WEATHER - {fault.verb}, key=lambda one: one.value))
    return replace(fault, verb=verb, amount=random.choice(_AMOUNTS.get(verb, (0.0,))))


def _random_fault(random: Random, verb: Verb, near: ScenarioEvent | None) -> ScenarioEvent:
    local = verb.value.endswith((" of", "hang", "drain")) or "cut off" in verb.value
    nodes = near.nodes if near else (random.choice(_NODES),)
    spans = _SHORT if verb is Verb.KILL_AGENT else _LONG if verb in _MAY_BE_LONG else _LASTS
    lasts = None if verb in _AT_ONCE else random.choice(spans)
    amount = random.choice(_AMOUNTS.get(verb, (0.0,)))
    if verb is Verb.KILL_AGENT and random.random() < 0.6:
        amount = float(random.randint(1, random.choice((10, 50, 400))))
    at = _random_time(random, 1, STORM - 60)
    if near:
        around = ((max(1.0, near.at - 10), near.at), (near.at, near.at + 6), (near.at, near.at + 30))
        at = _random_time(random, *random.choice(around))
    if verb in _WEATHER and random.random() < 0.5:
        local = True
    return ScenarioEvent(at=at, verb=verb, nodes=nodes if local else (), lasts=lasts, amount=amount)


def _program_restarts(random: Random, faults: Sequence[ScenarioEvent]) -> Sequence[ScenarioEvent]:
    """Where programs that start are served old lists, some start."""
    found = []
    for fault in faults:
        if fault.verb is Verb.STALE_STARTS:
            at = _random_time(random, fault.at, fault.at + min(fault.lasts or 0.0, 5.0))
            verb = Verb.KILL_AGENT if fault.nodes or random.random() < 0.7 else Verb.KILL_CONTROLLERS
            nodes = fault.nodes or (random.choice(_NODES),)
            on = nodes if verb is Verb.KILL_AGENT else ()
            found.append(ScenarioEvent(at=at, verb=verb, nodes=on, lasts=random.choice(_SHORT[:-1])))
    return found


def _random_time(random: Random, first: float, last: float) -> float:
    """To the millisecond, so that it can be written down."""
    return round(random.uniform(first, last), 3)
