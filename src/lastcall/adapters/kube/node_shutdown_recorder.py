"""Writes a node's ``NodeShutdown``: the record of its newest shutdown, under the Node's name.

Spec and status are written in one request, so that a reader never sees what one boot has ended beside the boot id of
another. The steps before the first kill and after the last one wait for the record for a moment
(``ports.node.NodeFace``); no other step does.
"""

import asyncio
import logging
from collections.abc import Iterable, Sequence

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
"""Seconds before a write that no step waits for: a hundred pods end within few of them."""

RETRY_SECONDS = 2.0
ASK_SECONDS = 5.0
"""Seconds for one request before it is retried."""

FIRST_SECONDS = 0.25
"""Longest wait of the first SIGTERM for the record, in seconds: ending pods does not depend on it."""

LAST_SECONDS = 2.0
"""Longest wait of the machine for the record at the end, in seconds, all calls of the shutdown together.

A server that has not answered since an earlier request has had its time while the pods ended: it gets FIRST_SECONDS.
"""

log = logging.getLogger(__name__)


class NodeShutdownRecorder:
    """Collects the events of a node's shutdowns, and writes the resulting record while ``run`` runs.

    Needs the verbs patch and create on this NodeShutdown (create makes the first one).
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
        """Seconds that the machine should still wait for the record, when everything else is done."""
        waited = 0.0 if self._owed_since is None else self._clock.boottime() - self._owed_since
        return max(FIRST_SECONDS, LAST_SECONDS - waited)

    def record_event(self, event: JournalEvent) -> None:
        """Adds an event of the agent, or of its journal from before a restart; all events from the beginning."""
        if isinstance(event, ShutdownStarted):
            self._events = []
        elif not self._events and not isinstance(event, ShutdownCancelled):
            return  # of a shutdown that an earlier run of the agent has handled
        self._events.append(event)
        self._heard += 1
        self._changed.set()

    async def wait_until_written(self) -> None:
        """Waits until all events before this call are written."""
        wanted = self._wanted = self._heard
        self._changed.set()
        while self._written < wanted:
            await self._changed.next()

    async def wait_written_within(self, seconds: float) -> None:
        """The same, but returns after so many seconds at the latest; the write is still retried."""
        await wait_first(self.wait_until_written(), self._clock.sleep(seconds))

    async def run(self) -> None:
        """Writes new events, at once if a step waits for them; never ends. Logs a failure once and retries."""
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
        """Writes the record; True if it is done: the server has accepted it, or never will."""
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
            # It was cancelled while no agent ran. The pods that it ended may run again, so they prove nothing.
            called_off = {"status": {"outcome": ShutdownOutcome.CANCELLED.value}}
            await self._client.patch(NODE_SHUTDOWNS, self._node, called_off)

    def _log_failure(self, why: str) -> bool:
        if why != self._failure:
            log.warning("this node's shutdown is not recorded at the API server: %s", why)
        self._failure = why
        return False

    def _record_object(self) -> Object:
        obj = to_node_shutdown(fold_events(self._events))
        obj["spec"]["id"], obj["metadata"] = obj["metadata"]["name"], {"name": self._node}
        obj["status"]["notes"] = obj["status"]["notes"][-MOST_NOTES:]
        return obj


class RecordingNodeFace:
    """``ports.node.NodeFace`` that also waits for the record at the announcement and at the end."""

    def __init__(self, face: NodeFace, records: NodeShutdownRecorder) -> None:
        self._face = face
        self._records = records

    def refuse_pods(self) -> None:
        """Calls the face."""
        self._face.refuse_pods()

    async def begin_shutdown(self, deadline: float) -> None:
        """Calls the face and waits for the record at once, FIRST_SECONDS at most; raises what the face raises."""
        writing = asyncio.ensure_future(self._records.wait_written_within(FIRST_SECONDS))
        try:
            await self._face.begin_shutdown(deadline)
            await wait_any(writing)
        finally:
            await cancel_and_wait(writing)

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Calls the face."""
        self._face.expect_pods(namespaces)

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> None:
        """Calls the face."""
        await self._face.begin_pod(live, grace, until)

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Calls the face."""
        return await self._face.report_pod_ended(live, exit_codes)

    async def report_finished(self) -> None:
        """Calls the face, then waits for the record for ``wait_seconds``."""
        await self._face.report_finished()
        await self._records.wait_written_within(self._records.wait_seconds)

    def take_notes(self) -> Sequence[str]:
        """Calls the face."""
        return self._face.take_notes()

    async def clean_up(self) -> None:
        """Calls the face."""
        await self._face.clean_up()

    async def mark_ready(self) -> None:
        """Calls the face."""
        await self._face.mark_ready()
