"""A large, ordinary cluster and its rolling reboot, as a scenario (pure)."""

from collections.abc import Iterator

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

PODS_PER_NODE = 30
CRITICAL = 2_000_000_000

SELDOM = 0.001
"""Requests a second to each Service: this scenario is about nodes and pods, not about traffic."""

_SIZES = (2, 3, 5, 8, 12, 20, 30, 50)
"""Replicas of workloads, in turn."""


def fleet_scenario(nodes: int, *, at_once: int, lasts: float) -> Scenario:
    """``nodes`` machines with thirty pods each, which are rebooted ``at_once`` at a time from the first minute on.

    One of the thirty is a DaemonSet's; of the others every tenth workload is a StatefulSet, and all others are
    Deployments with a Service, most of them with a preStop hook, and with a budget. Containers are not told of the
    Services: of hundreds that would be thousands of variables for each.
    """
    groups = (PhasePlan(priority=0, seconds=30), PhasePlan(priority=CRITICAL, seconds=10))
    return Scenario(
        name=f"fleet of {nodes}",
        nodes=(NodeGroup(count=nodes),),
        workloads=tuple(_fleet_workloads(nodes * (PODS_PER_NODE - 1))),
        agent=AgentConfig(kind=AGENT_CONFIGURATION, groups=groups),
        timeline=(ScenarioEvent(at=60, verb=Verb.ROLL, nodes=("all nodes",), amount=at_once),),
        settled=True,
        lasts=lasts,
    )


def _fleet_workloads(pods: int) -> Iterator[ScenarioWorkload]:
    yield ScenarioWorkload(
        kind=ScenarioWorkloadKind.DAEMON_SET, name="logs", priority_class="system-node-critical", links=False
    )
    number = 0
    while pods:
        replicas = min(pods, _SIZES[number % len(_SIZES)])
        pods -= replicas
        number += 1
        if number % 10 == 0:
            yield ScenarioWorkload(
                kind=ScenarioWorkloadKind.STATEFUL_SET, name=f"store-{number}", replicas=replicas, links=False
            )
        else:
            hook = 3.0 if number % 3 else 0.0
            yield ScenarioWorkload(
                kind=ScenarioWorkloadKind.DEPLOYMENT,
                name=f"web-{number}",
                replicas=replicas,
                requests=SELDOM,
                pre_stop=hook,
                min_available="50%",
                links=False,
            )
