"""Connects a drain to the cluster."""

import getpass
import socket
from collections.abc import Collection, Mapping, Sequence
from random import SystemRandom
from typing import NamedTuple

from lastcall.adapters.kube.budget_watch import KubeBudgetWatch
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_cluster import COMPONENT, KubeDrainCluster
from lastcall.adapters.kube.drain_watch import KubeDrainWatch
from lastcall.adapters.kube.node_ownership import KubeNodeOwnership
from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.execution.chosen_pods import PodChooser
from lastcall.drain.execution.drain_observer import DrainObserver
from lastcall.drain.execution.drain_run import DrainParts, DrainRun
from lastcall.drain.execution.node_writer import NodeWriter, new_mark
from lastcall.model.balancer_marks import BalancerMark
from lastcall.model.drain_facts import DrainNode
from lastcall.model.drain_limits import DrainLimits
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.node_ownership import OwnershipClaim
from lastcall.ports.drain import PodEvictions
from lastcall.ports.node import Clock


class DrainOrder(NamedTuple):
    """What is asked for. ``reason`` is a person's; ``uncordons``: a drain that fails takes its cordon back.

    ``ignores_owners``: other programs that work on a node are passed by, but not other drains. ``balancers`` are set on
    the nodes for external load balancers.
    """

    nodes: Sequence[DrainNode]
    settings: DrainSettings
    limits: DrainLimits
    reason: str = ""
    uncordons: bool = False
    ignores_owners: bool = False
    balancers: Collection[BalancerMark] = ()


def make_drain_run(
    client: Client,
    order: DrainOrder,
    *,
    choose: PodChooser,
    observer: DrainObserver,
    clock: Clock,
    evictions: PodEvictions | None = None,
) -> DrainRun:
    """A run that has not begun. It goes on with what an earlier run has left on the Nodes.

    ``evictions`` None: by the Eviction API.
    """
    random = SystemRandom()
    unique = f"{random.getrandbits(48):012x}"
    by, names = find_user(), [node.name for node in order.nodes]
    cluster = KubeDrainCluster(client, clock, f"{COMPONENT}-{unique}")
    uids: Mapping[str, str] = {node.name: node.metadata.uid for node in order.nodes}
    claim = OwnershipClaim(f"{COMPONENT}/{by}/{unique}", order.reason)
    parts = DrainParts(
        cluster=cluster,
        evictions=evictions or cluster,
        ownership=KubeNodeOwnership(client, claim, uids, clock, ignores_others=order.ignores_owners),
        watch=KubeDrainWatch(client, names, clock, random),
        budgets=KubeBudgetWatch(client, clock, random),
        clock=clock,
        observer=observer,
    )
    course = DrainCourse(
        settings=order.settings,
        limits=order.limits,
        nodes=tuple(NodeProgress(name=name) for name in names),
    )
    mark = new_mark(unique, by, order.reason, clock.wall())
    writer = NodeWriter(cluster, mark, clock, balancers=order.balancers)
    return DrainRun(course, order.nodes, parts, writer=writer, choose=choose, uncordons=order.uncordons)


def find_user() -> str:
    """Who drains: the user at this host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"
