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
from lastcall.drain.traffic.traffic_watch import POLL_SECONDS, TrafficWatch
from lastcall.model.balancer_gates import list_balancer_gates
from lastcall.ports.node import Clock

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.drain.planning.drain_case import DrainCase

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
        await self._watch.begin(pods, [ProxyNode(one.name, one.readiness == "True") for one in case.facts.nodes])
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

    async def close(self) -> None:
        """Ends the watch, also of a drain that was interrupted."""
        if self._moving:
            await cancel_and_wait(self._moving)

    def _tell(self, pod: DepartingPod, step: DepartureStep) -> None:
        """After the pods are gone each change is a line; before, the lines of the drain are enough."""
        if self._is_over and step.stage is not DepartureStage.MOVED:
            self._view.tell_traffic(f"the traffic of pod {pod.namespace}/{pod.name}: {step.why}")


@contextlib.asynccontextmanager
async def open_drain_traffic(
    client: "Client", case: "DrainCase", view: DrainView, clock: Clock, *, authority: str, settle: float | None
) -> AsyncIterator[DrainTraffic]:
    """Begins to watch the traffic of the pods of the case; ``settle`` None: the settle time is learnt."""
    from lastcall.wiring.traffic import AgentAddress, open_traffic_watch

    agents = [AgentAddress(node.name, node.internal_address) for node in case.facts.nodes]
    random = Random()  # noqa: S311 - chooses which nodes are asked
    async with open_traffic_watch(client, clock, random, agents, authority=authority, settle=settle) as watch:
        traffic = DrainTraffic(watch, view, clock)
        try:
            await traffic.begin(case)
            yield traffic
        finally:
            await traffic.close()
