"""A node's own last word in the API: its ``NodeShutdown``, which bears the Node's name and tells of the newest shutdown.

It is written whole, spec and status in one request: whoever reads it never sees what one boot has ended beside the boot id
of another. What comes before the first kill, and after the last, waits for it for a moment (``ports.NodeFace``); nothing
else does.
"""

import asyncio
import logging

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NODE_SHUTDOWNS, Object
from lastcall.aio import Signal, cancel_and_wait, wait_any, wait_first
from lastcall.errors import ApiNotPermitted, LastcallError, NotFound, RequestRefused
from lastcall.model.node_shutdown_export import to_node_shutdown
from lastcall.model.node_shutdown_object import MOST_NOTES
from lastcall.model.shutdown import JournalEvent, ShutdownCancelled, ShutdownOutcome, ShutdownStarted
from lastcall.model.shutdown_fold import fold_events
from lastcall.ports.node import Clock, NodeFace, RunningPod

SOON = 1.0
"""Seconds before a write that nobody waits for: a hundred pods end within few of them."""

RETRY_SECONDS = 2.0
ASK_SECONDS = 5.0
"""How long one request may take before it is asked anew."""

FIRST_SECONDS = 0.25
"""How long the first SIGTERM waits for the record at the most: the pods' end does not depend on it."""

LAST_SECONDS = 2.0
"""How long the machine waits for the record in the end, all calls of the shutdown together.

A server that is asked since so long and does not answer has had its time while the pods ended: it gets FIRST_SECONDS.
"""

log = logging.getLogger(__name__)


class NodeShutdownRecorder:
    """Listens to the events of a node's shutdowns, and writes what they add up to while ``run`` runs.

    Needs the verb patch on this NodeShutdown, and create, which the first one is made by.
    """

    def __init__(self, client: Client, node: str, clock: Clock) -> None:
        self._client = client
        self._node = node
        self._clock = clock
        self._events: list[JournalEvent] = []
        self._heard = self._written = self._wanted = 0
        self._changed = Signal()
        self._failure = ""
        self._owed_since: float | None = None

    @property
    def wait_seconds(self) -> float:
        """For how many seconds more the record is worth waiting for, now that there is nothing else to wait for."""
        waited = 0.0 if self._owed_since is None else self._clock.boottime() - self._owed_since
        return max(FIRST_SECONDS, LAST_SECONDS - waited)

    def record_event(self, event: JournalEvent) -> None:
        """What the agent records, or what an earlier life of it has recorded, from the beginning."""
        if isinstance(event, ShutdownStarted):
            self._events = []
        elif not self._events and not isinstance(event, ShutdownCancelled):
            return  # of a shutdown that an earlier life has seen to
        self._events.append(event)
        self._heard += 1
        self._changed.set()

    async def wait_until_written(self) -> None:
        """Returns when everything is written that was heard before this call."""
        wanted = self._wanted = self._heard
        self._changed.set()
        while self._written < wanted:
            await self._changed.next()

    async def wait_written_within(self, seconds: float) -> None:
        """The same, but returns after so many seconds at the latest; it is tried further."""
        await wait_first(self.wait_until_written(), self._clock.sleep(seconds))

    async def run(self) -> None:
        """Writes what is new, what is waited for at once; never ends. What fails is told once, and tried again."""
        while True:
            while self._written == self._heard:
                await self._changed.next()
            await self._wait_for_more_events()
            heard = self._heard
            self._owed_since = self._clock.boottime() if self._owed_since is None else self._owed_since
            if await self._write_record():
                self._written, self._owed_since = heard, None
                self._changed.set()
            else:
                await self._clock.sleep(RETRY_SECONDS)

    # ------------------------------------------------------------------------------------------------------------------

    async def _wait_for_more_events(self) -> None:
        soon = self._clock.boottime() + SOON
        while self._wanted <= self._written and self._clock.boottime() < soon:
            await wait_first(self._changed.next(), self._clock.sleep(soon - self._clock.boottime()))

    async def _write_record(self) -> bool:
        """Whether there is nothing left to try: the server has taken it, or never will."""
        asking = asyncio.ensure_future(self._send_record())
        try:
            if await wait_first(wait_any(asking), self._clock.sleep(ASK_SECONDS)):
                return self._log_failure(f"no answer within {ASK_SECONDS:g} s")
            asking.result()
        except NotFound:
            log.info("no record of this shutdown is in the API: NodeShutdown is not defined there")
        except (RequestRefused, ApiNotPermitted) as error:
            self._log_failure(str(error))
        except LastcallError as error:
            return self._log_failure(str(error))
        else:
            self._failure = ""
        finally:
            await cancel_and_wait(asking)
        return True

    async def _send_record(self) -> None:
        if isinstance(self._events[0], ShutdownStarted):
            await self._client.apply(NODE_SHUTDOWNS, self._node, self._record_object(), force=True)
        else:
            # It was called off while no agent was there; what it has ended may run again, and proves nothing.
            called_off = {"status": {"outcome": ShutdownOutcome.CANCELLED.value}}
            await self._client.patch(NODE_SHUTDOWNS, self._node, called_off)

    def _log_failure(self, why: str) -> bool:
        if why != self._failure:
            log.warning("the API server does not know of this node's shutdown: %s", why)
        self._failure = why
        return False

    def _record_object(self) -> Object:
        obj = to_node_shutdown(fold_events(self._events))
        obj["spec"]["id"], obj["metadata"] = obj["metadata"]["name"], {"name": self._node}
        obj["status"]["notes"] = obj["status"]["notes"][-MOST_NOTES:]
        return obj


class RecordingNodeFace:
    """``ports.NodeFace`` whose announcement and last word are over when the record is written too."""

    def __init__(self, face: NodeFace, records: NodeShutdownRecorder) -> None:
        self._face = face
        self._records = records

    def refuse_pods(self) -> None:
        """As the face does."""
        self._face.refuse_pods()

    async def begin_shutdown(self, deadline: float) -> None:
        """Both at once; what the face raises is raised. The record is waited for FIRST_SECONDS at the most."""
        writing = asyncio.ensure_future(self._records.wait_written_within(FIRST_SECONDS))
        try:
            await self._face.begin_shutdown(deadline)
            await wait_any(writing)
        finally:
            await cancel_and_wait(writing)

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """As the face does."""
        return await self._face.report_pod_ended(live, exit_codes)

    async def report_finished(self) -> None:
        """The face's, and then the record, for as long as it is worth waiting for."""
        await self._face.report_finished()
        await self._records.wait_written_within(self._records.wait_seconds)

    async def mark_ready(self) -> None:
        """As the face does."""
        await self._face.mark_ready()
