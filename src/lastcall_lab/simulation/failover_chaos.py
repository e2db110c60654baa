"""A seed's story for the failover controller: machines are lost, and so are controllers and BMCs (pure)."""

from collections.abc import Sequence
from random import Random

from lastcall.graceful.config import AgentConfig
from lastcall.model.shutdown import PhasePlan
from lastcall.model.watchdog import WatchdogSettings
from lastcall.model.watchdog_peers import PeerSettings
from lastcall.names import AGENT_CONFIGURATION
from lastcall_lab.simulation.scenario import (
    FailoverSettings,
    NodeGroup,
    Scenario,
    ScenarioEvent,
    ScenarioWorkload,
    ScenarioWorkloadKind,
    Verb,
)
from lastcall_lab.simulation.seeds import random_of

DESCRIPTION = (
    "Three to six machines, of which some are lost, and everything that can be wrong with who fails them over."
)

STORM = 70.0
"""Seconds in which everything begins."""

QUIET = 250.0
"""Seconds afterwards in which everything must come to its end; the longest fault is over after the first of them."""

_LOSSES = {Verb.POWER_CUT: 3, Verb.HANG: 3, Verb.PARTITION: 4, Verb.REBOOT: 2, Verb.KILL_AGENT: 1}
_CONTROLLER = {
    Verb.KILL_FAILOVER: 6,
    Verb.CUT_FAILOVER: 3,
    Verb.STOP_FAILOVER: 1,
    Verb.PAUSE_FAILOVER: 4,
    Verb.CLOCK_FAILOVER: 2,
}
_POLICY = {Verb.POLICY_SUSPECT: 2, Verb.POLICY_OBSERVE: 1}
_CLOCKS = {Verb.CLOCK_STEP: 1, Verb.CLOCK_DRIFT: 1, Verb.DISK_SLOW: 1}
_BMC = {
    Verb.BMC_SAYS_ON: 1,
    Verb.BMC_SAYS_OFF: 2,
    Verb.BMC_DEAF: 2,
    Verb.BMC_STUCK: 2,
    Verb.BMC_LATE: 2,
    Verb.BMC_WIRED: 1,
}
_WEATHER = {
    Verb.API_DOWN: 1,
    Verb.API_RESTART: 1,
    Verb.API_ERRORS: 4,
    Verb.API_SLOW: 2,
    Verb.WATCH_LATE: 2,
    Verb.WATCH_DOUBLE: 2,
    Verb.WATCH_TORN: 2,
    Verb.WATCH_SILENT: 2,
    Verb.WATCH_LOST: 2,
    Verb.API_COMPACT: 2,
    Verb.REQUESTS_LOST: 2,
    Verb.ANSWERS_LOST: 2,
    Verb.STALE_LISTS: 2,
    Verb.ETCD_RESTORE: 1,
    Verb.KILL_CONTROLLERS: 2,
    Verb.PAUSE_CONTROLLERS: 1,
}
_OF_A_MACHINE = (Verb.REQUESTS_LOST, Verb.ANSWERS_LOST, Verb.STALE_LISTS)
"""What is on the way to the API server, and can be so for one machine alone: a partition in one direction."""

_WATCHDOG = WatchdogSettings(lease_seconds=60, pet_seconds=5, timeout_seconds=15, peers=PeerSettings())

VERBS = (Verb.DATAGRAMS_DOUBLE, *_LOSSES, *_CONTROLLER, *_POLICY, *_CLOCKS, *_BMC, *_WEATHER)
"""All that can happen."""

_AMOUNTS = {
    Verb.API_ERRORS: (0.05, 0.2),
    Verb.API_SLOW: (0.1, 1.0, 5.0),
    Verb.WATCH_LATE: (0.5, 3.0, 10.0),
    Verb.WATCH_DOUBLE: (0.5,),
    Verb.WATCH_TORN: (0.2,),
    Verb.WATCH_LOST: (0.05, 0.3),
    Verb.STALE_LISTS: (1.0, 5.0),
    Verb.CLOCK_STEP: (-3600.0, -20.0, 20.0, 3600.0),
    Verb.CLOCK_FAILOVER: (-3600.0, -20.0, 20.0, 3600.0),
    Verb.CLOCK_DRIFT: (-20.0, 20.0),
    Verb.DISK_SLOW: (0.5, 5.0),
    Verb.POLICY_SUSPECT: (10.0, 15.0, 60.0),
    Verb.BMC_LATE: (1.0, 4.0, 12.0),
}
_LASTS = {
    **dict.fromkeys((Verb.POWER_CUT, Verb.HANG, Verb.PARTITION), (5.0, 25.0, 60.0, 110.0)),
    **dict.fromkeys((Verb.REBOOT, Verb.KILL_AGENT), (2.0, 20.0)),
    **dict.fromkeys((*_CONTROLLER, *_POLICY, *_CLOCKS, *_WEATHER), (1.0, 10.0, 45.0)),
    **dict.fromkeys(_BMC, (20.0, 60.0, 110.0)),
}
"""Seconds."""


_DOMAINS: Sequence[dict[str, tuple[str, ...]]] = ({}, {"topology.kubernetes.io/zone": ("a", "b", "c")})


def generate_scenario(seed: int) -> Scenario:
    """The story of a seed."""
    random = random_of(str(seed), "failover chaos")
    more = random_of(str(seed), "failover chaos/machines")
    nodes = NodeGroup(count=more.choice((3, 3, 4, 5, 6)), domains=more.choice(_DOMAINS))
    watchdog = more.choice((None, None, None, _WATCHDOG))
    losses = _random_losses(random, nodes.node_names)
    others = _drop_undetectable_lies(
        [_accompanying_fault(random, losses, nodes.node_names) for _ in range(random.choice((0, 1, 2, 3)))]
    )
    return Scenario(
        name=f"failover-chaos-{seed}",
        description=DESCRIPTION,
        nodes=(nodes,),
        workloads=_random_workloads(random),
        agent=AgentConfig(
            kind=AGENT_CONFIGURATION,
            groups=(PhasePlan(priority=0, seconds=15), PhasePlan(priority=2_000_000_000, seconds=5)),
            watchdog=watchdog,
        ),
        failover=FailoverSettings(
            replicas=random.choice((1, 2)),
            suspect_after=random.choice((15.0, 20.0, 40.0)),
            power_on=random.random() < 0.7,
            min_healthy=random.choice(("51%", "1")),
            settle=random.choice((1.0, 5.0)),
        ),
        boot=5.0,
        timeline=tuple(
            sorted((*losses, *others, *(_datagram_faults(more) if watchdog else ())), key=lambda event: event.at)
        ),
        lasts=STORM + QUIET,
    )


def _datagram_faults(random: Random) -> Sequence[ScenarioEvent]:
    """While watchdogs ask their peers."""
    at = _random_time(random, 1.0, STORM / 2)
    return (ScenarioEvent(at=at, verb=Verb.DATAGRAMS_DOUBLE, amount=random.choice((0.2, 1.0)), lasts=60.0),)


def _random_workloads(random: Random) -> tuple[ScenarioWorkload, ...]:
    ends = random.choice((0.0, 2.0, 8.0))
    return (
        ScenarioWorkload(
            kind=ScenarioWorkloadKind.STATEFUL_SET, name="db", replicas=2, volume=True, writes=0.5, grace=10, ends=ends
        ),
        ScenarioWorkload(kind=ScenarioWorkloadKind.DEPLOYMENT, name="web", replicas=2, grace=10),
    )


def _random_losses(random: Random, names: Sequence[str]) -> list[ScenarioEvent]:
    """One machine, or two soon after each other; what has a short fault may be back when it is to be switched off."""
    nodes = random.sample(names, random.choice((1, 1, 1, 2)))
    verbs = random.choices(list(_LOSSES), list(_LOSSES.values()), k=len(nodes))
    found, at = [], _random_time(random, 1, 15)
    for node, verb in zip(nodes, verbs, strict=True):
        found.append(ScenarioEvent(at=at, verb=verb, nodes=(node,), lasts=random.choice(_LASTS[verb])))
        at = _random_time(random, at, at + random.choice((1.0, 20.0, 40.0)))
    return found


def _accompanying_fault(random: Random, losses: Sequence[ScenarioEvent], names: Sequence[str]) -> ScenarioEvent:
    """Near a loss: while the machine is suspected, fenced, or its pods are forced."""
    near = random.choice(losses)
    table = random.choice((_CONTROLLER, _CONTROLLER, _BMC, _WEATHER, _WEATHER, _POLICY, _CLOCKS))
    verb = random.choices(list(table), list(table.values()))[0]
    lasts, at = random.choice(_LASTS[verb]), _random_time(random, near.at, min(near.at + 45.0, STORM))
    amount = random.choice(_AMOUNTS.get(verb, (0.0,)))
    if verb is Verb.KILL_FAILOVER:
        amount = float(random.randint(1, random.choice((30, 150, 400))))
    if verb in _BMC:
        wired = random.choice([node for node in names if node not in near.nodes])
        if verb is Verb.BMC_WIRED:
            return ScenarioEvent(at=0.0, verb=verb, nodes=near.nodes, lasts=STORM, other=wired)
        return ScenarioEvent(at=_random_time(random, 0.0, at), verb=verb, nodes=near.nodes, lasts=lasts, amount=amount)
    if verb in _CLOCKS:
        return ScenarioEvent(at=at, verb=verb, nodes=near.nodes, lasts=lasts, amount=amount)
    if verb in _OF_A_MACHINE and random.random() < 0.5:
        return ScenarioEvent(at=at, verb=verb, nodes=near.nodes, lasts=lasts, amount=amount)
    if verb is Verb.API_COMPACT:
        return ScenarioEvent(at=at, verb=verb)
    return ScenarioEvent(at=at, verb=verb, lasts=lasts, amount=amount)


def _drop_undetectable_lies(events: Sequence[ScenarioEvent]) -> list[ScenarioEvent]:
    """Without those of a BMC that says that its machine is off, if it ever switches nothing.

    A device that takes the order, leaves the machine on and confirms twice that it is off cannot be told from one that
    works (docs/known-limits.md); what is left can be: by itself each of the two is found out.
    """
    stuck = {event.nodes for event in events if event.verb is Verb.BMC_STUCK}
    return [event for event in events if event.verb is not Verb.BMC_SAYS_OFF or event.nodes not in stuck]


def _random_time(random: Random, first: float, last: float) -> float:
    """To the millisecond, so that it can be written down."""
    return round(random.uniform(first, last), 3)
