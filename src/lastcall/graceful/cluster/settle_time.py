"""The time that the nodes' proxies need to follow an EndpointSlice: configured, or learnt from this node's kube-proxy."""

import asyncio
import logging

from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError
from lastcall.ports.cluster import ProxyLatency

DEFAULT_SECONDS = 0.5
"""The time while nothing has been learnt, in seconds."""

log = logging.getLogger(__name__)


class SettleTime:
    """``configured`` in seconds counts if it is given; ``proxies`` is asked otherwise, once for each shutdown.

    This node's kube-proxy stands for those of the other nodes: all follow the same slices with the same settings.
    """

    def __init__(self, configured: float | None, proxies: ProxyLatency) -> None:
        self._configured = configured
        self._proxies = proxies
        self._learnt: float | None = None
        self._reading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to ask, if nothing is configured. No caller waits for the answer."""
        if self._configured is None and self._reading is None:
            self._reading = asyncio.create_task(self._read(), name="kube-proxy's latency")

    def current_seconds(self) -> float:
        """The time to wait now, in seconds."""
        if self._configured is not None:
            return self._configured
        return DEFAULT_SECONDS if self._learnt is None else self._learnt

    async def stop(self) -> None:
        """Ends the request. What was learnt stays until the next answer."""
        if self._reading:
            await cancel_and_wait(self._reading)
            self._reading = None

    async def _read(self) -> None:
        try:
            learnt = await self._proxies.read_latency()
        except LastcallError as error:
            log.info("the settle time is %g s, because kube-proxy's latency is not known: %s", DEFAULT_SECONDS, error)
            return
        if learnt is not None:
            log.info("the settle time is %g s, in which kube-proxy follows nearly all changes", learnt)
            self._learnt = learnt
