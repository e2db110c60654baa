"""Writes one pod's status after each change, and retries while the API server is away."""

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
    """``wanted`` returns the status to write, ``known`` the pod as last read; ``learn`` receives the response."""

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
        """Stops writing because the pod is gone."""
        self._over = True

    def mark_changed(self) -> None:
        """Signals that the status may have changed."""
        self._due.set()

    async def run(self) -> None:
        """Runs until cancelled."""
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
        """Returns when every change so far has been written."""
        written = self._written.next()
        self._due.set()
        await written

    async def write(self) -> None:
        """Writes the status now. Serialized, so that no older status overwrites a newer one. LastcallError.

        A pod that is gone is no failure. A conflict can mean that another pod now has this name; the watch will report
        it, and until then the writer retries.
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
