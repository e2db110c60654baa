"""How long a pod's SIGTERM waits for its Services to stop sending it traffic."""

from collections.abc import Awaitable, Callable

from lastcall.aio import wait_first
from lastcall.graceful.cluster.settle_time import SettleTime
from lastcall.model.pods import Pod
from lastcall.ports.cluster import PodEndpoints
from lastcall.ports.node import Clock

ANSWER_SECONDS = 0.25
"""An API server that does not answer for so long ends the wait, in seconds."""


class TrafficWait:
    """Waits for one pod at a time; ``settle`` is the time that proxies need to follow the EndpointSlices.

    ``settle`` is asked for only for a pod that a slice names as ready. ``observe`` gets the seconds from the beginning of
    a wait until the slices are without the pod.
    """

    def __init__(
        self, endpoints: PodEndpoints, *, settle: SettleTime, observe: Callable[[float], None], clock: Clock
    ) -> None:
        self._endpoints = endpoints
        self._settle = settle
        self._observe = observe
        self._clock = clock

    async def receives_traffic(self, pod: Pod, *, by: float) -> bool | None:
        """Whether an EndpointSlice names the pod as ready; None if the slices are not listed ``by`` (boottime seconds)."""
        while (receives := self._endpoints.receives_traffic(pod)) is None:
            if not await self._is_done_by(by, self._endpoints.next_change()):
                return None
        return receives

    async def wait_until_withdrawn(
        self,
        pod: Pod,
        announced: Callable[[], Awaitable[None]],
        *,
        since: float,
        until: float,
        stopped: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Returns when no EndpointSlice names the pod as ready any more and the settle time is over.

        At ``until`` (CLOCK_BOOTTIME seconds) it returns in any case, and earlier if the server does not answer:
        ``announced``, the wait for the pod's first write, has to end in ``ANSWER_SECONDS``, after ``stopped``, the wait
        for the end of a kubelet that must not see that write. ``since`` is when the pod's termination began.
        """
        self._settle.start()
        if stopped and not await self._is_done_by(until, stopped()):
            return
        answer_by = min(self._clock.boottime() + ANSWER_SECONDS, until)
        if not await self._is_done_by(answer_by, announced()):
            return
        while self._endpoints.receives_traffic(pod):
            if not await self._is_done_by(until, self._endpoints.next_change()):
                return
        self._observe(self._clock.boottime() - since)
        await self._clock.sleep(min(self._settle.current_seconds(), until - self._clock.boottime()))

    async def _is_done_by(self, moment: float, work: Awaitable[None]) -> bool:
        """Whether it is done before that moment; it is cancelled otherwise."""
        return not await wait_first(work, self._clock.sleep(moment - self._clock.boottime()))
