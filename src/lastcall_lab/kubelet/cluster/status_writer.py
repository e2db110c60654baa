"""Writes one pod's status whenever it has changed, again and again while the API server is away."""

import asyncio
import logging
from collections.abc import Callable

from lastcall.adapters.kube.client import STRATEGIC, Client
from lastcall.adapters.kube.resources import PODS, Object
from lastcall.aio import Signal
from lastcall.errors import LastcallError, NotFound
from lastcall.ports.node import Clock
from lastcall_lab.kubelet.base.cheap_event import CheapEvent
from lastcall_lab.kubelet.state import pod_status

log = logging.getLogger(__name__)


class StatusWriter:
    """``wanted`` gives what is to be written, ``known`` the pod as it is there; ``learn`` hears the answer."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        wanted: Callable[[], Object],
        known: Callable[[], Object],
        learn: Callable[[Object], object],
        retry: float,
    ) -> None:
        self._client = client
        self._clock = clock
        self._wanted = wanted
        self._known = known
        self._learn = learn
        self._retry = retry
        self._due = CheapEvent()
        self._written = Signal()
        self._telling = ""
        self._over = False
        self._turn = asyncio.Lock()

    def stop(self) -> None:
        """The pod is gone: there is nothing more to be said of it."""
        self._over = True

    def mark_changed(self) -> None:
        """There may be something new to be said."""
        self._due.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._due.wait()
            self._due.clear()
            try:
                await self.write()
            except LastcallError as error:
                self._due.set()
                if str(error) != self._telling:
                    self._telling = str(error)
                    metadata = self._known()["metadata"]
                    log.warning("the status of pod %s/%s waits: %s", metadata["namespace"], metadata["name"], error)
                await self._clock.sleep(self._retry)
                continue
            self._telling = ""
            if not self._due.is_set():
                self._written.set()

    async def wait_until_written(self) -> None:
        """Returns when all that was to be said so far is written."""
        written = self._written.next()
        self._due.set()
        await written

    async def write(self) -> None:
        """Now, but one after the other, so that nothing older comes after what is newer. LastcallError.

        That the pod is gone is no failure.
        A conflict can mean that another pod has its name: then the watch will tell, and until then it is tried again.
        """
        async with self._turn:
            await self._write_status()

    async def _write_status(self) -> None:
        pod = self._known()
        metadata = pod["metadata"]
        body = pod_status.status_patch(self._wanted(), pod.get("status") or {}, metadata["uid"])
        if body is None or self._over:
            return
        try:
            answer = await self._client.patch(
                PODS, metadata["name"], body, namespace=metadata["namespace"], subresource="status", kind=STRATEGIC
            )
        except NotFound:
            return
        self._learn(answer)
