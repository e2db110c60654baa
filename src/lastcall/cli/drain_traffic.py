"""The traffic of a drain: watched while pods are evicted, and waited for at the end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random
from typing import TYPE_CHECKING

from lastcall.aio import cancel_and_wait, timeout
from lastcall.cli.drain_view import DrainView
from lastcall.drain.execution.traffic_follower import TrafficFollower
from lastcall.drain.traffic.departing_pods import DepartingPod, ProxyNode
from lastcall.drain.traffic.departure import DepartureStage, DepartureStep
from lastcall.drain.traffic.sleep_advice import has_added_sleep, list_sleep_notes
from lastcall.drain.traffic.traffic_watch import POLL_SECONDS, TrafficWatch
from lastcall.model.balancer_gates import list_balancer_gates
from lastcall.ports.node import Clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lastcall.adapters.kube.client import Client
    from lastcall.drain.planning.drain_case import DrainCase, DrainNote

_QUIET_SECONDS = 2 * POLL_SECONDS
"""A shorter wait is not told."""


class DrainTraffic:
    """What ``lastcall drain`` does about traffic; ``observer`` is told what becomes of the pods."""

    def __init__(self, watch: TrafficWatch, view: DrainView, clock: Clock) -> None:
        self._watch = watch
        self._view = view
        self._clock = clock
        self._names: dict[str, str] = {}
        self._moving: asyncio.Task[object] | None = None
        self._is_over = False
        self._case: DrainCase | None = None
        self._advised: set[str] = set()
        self.observer = TrafficFollower(watch, view)

    async def begin(self, case: "DrainCase") -> None:
        """Before the first eviction."""
        pods = [
            DepartingPod(
                pod.metadata.uid,
                pod.metadata.namespace,
                pod.metadata.name,
                pod.spec.node_name,
                pod.status.pod_ip,
                terminates=pod.metadata.deletion_timestamp is not None,
                balancers=list_balancer_gates(pod),
            )
            for pod in case.evicted
        ]
        self._names = {pod.uid: f"{pod.namespace}/{pod.name}" for pod in pods}
        await self._watch.begin(pods, _list_nodes(case))
        self._case = case
        self._advise()
        self._moving = asyncio.create_task(self._watch.wait_until_moved(self._tell), name="watch the traffic")

    async def wait_until_moved(self) -> None:
        """After the pods are gone; those that are left are not waited for. Says what it waits for, and what was cut short."""
        if self._moving is None:
            return
        self._watch.forget_present()
        with contextlib.suppress(TimeoutError):
            async with timeout(_QUIET_SECONDS):
                await asyncio.shield(self._moving)
        self._is_over = True
        waited = {uid: step for uid, step in self._watch.steps.items() if step.stage is not DepartureStage.MOVED}
        if waited:
            first = next(iter(waited.values()))
            self._view.tell_traffic(f"the traffic of {len(waited)} pods has not moved yet: {first.why}")
        begun = self._clock.boottime()
        await self._moving
        if waited:
            self._view.tell_traffic(f"it has moved after {self._clock.boottime() - begun:.1f} s")
        for uid, step in self._watch.steps.items():
            if step.cut_short:
                self._view.warn(f"the traffic of pod {self._names[uid]}: {step.why}")
        self._advise()

    async def close(self) -> None:
        """Ends the watch, also of a drain that was interrupted."""
        if self._moving:
            await cancel_and_wait(self._moving)

    def _advise(self) -> None:
        """Says how to hold SIGTERM for as long as proxies need; once before the evictions, again if more was learnt."""
        settle = self._watch.settle_time
        if self._case is None or not settle.is_learnt:
            return
        for note in list_sleep_notes(self._case, settle):
            if note.mend not in self._advised:
                self._advised.add(note.mend)
                self._view.warn(f"{note.text}; mend: {note.mend}")

    def _tell(self, pod: DepartingPod, step: DepartureStep) -> None:
        """After the pods are gone each change is a line; before, the lines of the drain are enough."""
        if self._is_over and step.stage is not DepartureStage.MOVED:
            self._view.tell_traffic(f"the traffic of pod {pod.namespace}/{pod.name}: {step.why}")


@contextlib.asynccontextmanager
async def open_drain_traffic(
    client: "Client", case: "DrainCase", view: DrainView, clock: Clock, *, authority: str, settle: float | None
) -> AsyncIterator[DrainTraffic]:
    """Begins to watch the traffic of the pods of the case; ``settle`` None: the settle time is learnt."""
    async with _open_watch(client, case, clock, authority=authority, settle=settle) as watch:
        traffic = DrainTraffic(watch, view, clock)
        try:
            await traffic.begin(case)
            yield traffic
        finally:
            await traffic.close()


async def learn_sleep_notes(
    case: "DrainCase", kubeconfig: str | None, context: str | None, settle: float | None
) -> "Sequence[DrainNote]":
    """What the plan says of the sleeps that hold SIGTERM: agents are asked once, if a pod of the case has such a sleep."""
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.cli import cluster_access

    if not has_added_sleep(case):
        return ()
    clock = SystemClock()
    authority = cluster_access.find_authority(kubeconfig, context)
    async with (
        cluster_access.open_client(kubeconfig, context, manager="lastcall-drain") as client,
        _open_watch(client, case, clock, authority=authority, settle=settle) as watch,
    ):
        await watch.begin((), _list_nodes(case))
        found = watch.settle_time
    return [*list_sleep_notes(case, found)] if found.is_learnt else ()


def _list_nodes(case: "DrainCase") -> "Sequence[ProxyNode]":
    return [ProxyNode(one.name, one.readiness == "True") for one in case.facts.nodes]


def _open_watch(
    client: "Client", case: "DrainCase", clock: Clock, *, authority: str, settle: float | None
) -> "contextlib.AbstractAsyncContextManager[TrafficWatch]":
    from lastcall.wiring.traffic import AgentAddress, open_traffic_watch

    agents = [AgentAddress(node.name, node.internal_address) for node in case.facts.nodes]
    random = Random()  # noqa: S311 - chooses which nodes are asked
    return open_traffic_watch(client, clock, random, agents, authority=authority, settle=settle)
