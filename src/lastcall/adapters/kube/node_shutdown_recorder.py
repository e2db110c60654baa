"""Writes a node's ``NodeShutdown``: the record of its newest shutdown, under the Node's name.

Spec and status are written in one request, so that a reader never sees what one boot has ended beside the boot id of
another. After the last kill the machine waits for the record for a moment (``ports.node.NodeFace``); no other step does.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import NODE_SHUTDOWNS, Object
from lastcall.aio import Signal, cancel_and_wait, wait_any, wait_first
from lastcall.errors import ApiNotPermitted, LastcallError, NotFound, RequestRefused, Unavailable
from lastcall.model.node_shutdown_export import to_node_shutdown
from lastcall.model.node_shutdown_object import MOST_NOTES
from lastcall.model.shutdown import JournalEvent, LockReleased, ShutdownCancelled, ShutdownRecord, ShutdownStarted
from lastcall.model.shutdown_fold import fold_events
from lastcall.ports.node import ApplicationReadiness, Clock, NodeFace, RunningPod

SOON = 1.0
"""Seconds before a write that no step waits for: a hundred pods end within few of them."""

RETRY_SECONDS = 2.0
REFUSED_SECONDS = 300.0
"""Seconds before a record is sent again that the server has refused: somebody may have granted the right."""

ASK_SECONDS = 5.0
"""Seconds for one request before it is retried."""

FIRST_SECONDS = 0.5
"""Seconds from the beginning of a shutdown to the first record: before it the request would hold up SIGTERMs, and the release
of a dozen pods."""

SILENT_SECONDS = 0.25
"""Longest wait at the end for a server that has not answered since an earlier request, in seconds."""

LAST_SECONDS = 2.0
"""Longest wait of the machine for the record at the end, in seconds, all calls of the shutdown together.

A server that has not answered since an earlier request has had its time while the pods ended: it gets SILENT_SECONDS.
"""

log = logging.getLogger(__name__)


class _Answer(Enum):
    """The server's answer to a record."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"  # nobody waits for it any more; it is sent again much later
    MISSING = "Missing"


class NodeShutdownRecorder:
    """Collects the events of a node's shutdowns, and writes the resulting record while ``run`` runs.

    ``clients`` returns a client for each identity that may have the rights, the best one first: get, patch and create
    on this NodeShutdown (create makes the first one). A record that cannot be written is kept and sent again.
    """

    def __init__(self, clients: Callable[[], Sequence[Client]], node: str, clock: Clock) -> None:
        self._clients = clients
        self._node = node
        self._clock = clock
        self._events: list[JournalEvent] = []
        self._closed: ShutdownRecord | None = None
        self._heard = self._accepted = self._settled = self._wanted = 0
        self._due = math.inf
        self._changed = Signal()
        self._failure = ""
        self._notes: list[str] = []
        self._owed_since: float | None = None

    @property
    def wait_seconds(self) -> float:
        """Seconds that the machine should still wait for the record, when everything else is done."""
        waited = 0.0 if self._owed_since is None else self._clock.boottime() - self._owed_since
        return max(SILENT_SECONDS, LAST_SECONDS - waited)

    def record_event(self, event: JournalEvent) -> None:
        """Adds an event of the agent, or of its journal from before a restart; all events from the beginning."""
        if isinstance(event, ShutdownStarted):
            self._events, self._closed = [], None
        elif not self._events:
            return  # of a shutdown that an earlier run of the agent has handled
        self._events.append(event)
        self._heard += 1
        if isinstance(event, LockReleased | ShutdownCancelled):
            self._wanted = self._heard  # soon there may be nobody to write it
        self._changed.set()

    def record_closed(self, record: ShutdownRecord) -> None:
        """Writes the record of a shutdown that is over, unless the API has a newer one of this node."""
        if not self._events:
            self._closed = record
            self._heard += 1
            self._changed.set()

    def take_notes(self) -> Sequence[str]:
        """What the report shall say of the record since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def write_within(self, seconds: float) -> None:
        """The next record follows after so many seconds, and not later."""
        self._due = self._clock.boottime() + seconds
        self._changed.set()

    async def wait_until_written(self) -> None:
        """Waits until all events before this call are written, or refused."""
        wanted = self._wanted = self._heard
        self._changed.set()
        while self._settled < wanted and self._clients():
            await self._changed.next()

    async def wait_written_within(self, seconds: float) -> None:
        """The same, but returns after so many seconds at the latest; the write is still retried."""
        await wait_first(self.wait_until_written(), self._clock.sleep(seconds))

    async def run(self) -> None:
        """Writes new events, at once if a step waits for them; never ends. Logs a failure once and retries."""
        while True:
            while self._accepted == self._heard:
                await self._changed.next()
            await self._wait_for_more_events()
            heard = self._heard
            self._owed_since = self._clock.boottime() if self._owed_since is None else self._owed_since
            answer = await self._write_record()
            if answer is _Answer.MISSING:
                await self._clock.sleep(RETRY_SECONDS)
                continue
            self._settled, self._owed_since = heard, None
            self._changed.set()
            if answer is _Answer.ACCEPTED:
                self._accepted = heard
            elif heard == self._heard:
                await wait_first(self._changed.next(), self._clock.sleep(REFUSED_SECONDS))

    # ------------------------------------------------------------------------------------------------------------------

    async def _wait_for_more_events(self) -> None:
        soon = self._clock.boottime() + SOON
        while self._wanted <= self._settled and (left := min(soon, self._due) - self._clock.boottime()) > 0:
            await wait_first(self._changed.next(), self._clock.sleep(left))
        self._due = math.inf

    async def _write_record(self) -> _Answer:
        asking = asyncio.ensure_future(self._send_record())
        try:
            if await wait_first(wait_any(asking), self._clock.sleep(ASK_SECONDS)):
                return self._report_failure(f"no answer within {ASK_SECONDS:g} s", _Answer.MISSING)
            asking.result()
        except NotFound:
            return self._report_failure("NodeShutdown is not defined there", _Answer.REFUSED)
        except (RequestRefused, ApiNotPermitted) as error:
            return self._report_failure(str(error), _Answer.REFUSED)
        except LastcallError as error:
            return self._report_failure(str(error), _Answer.MISSING)
        finally:
            await cancel_and_wait(asking)
        self._failure = ""
        return _Answer.ACCEPTED

    async def _send_record(self) -> None:
        """Sends it with the first identity that is not refused; raises the first refusal."""
        refusals: list[LastcallError] = []
        for client in self._clients():
            try:
                return await self._send_as(client)
            except ApiNotPermitted as error:
                refusals.append(error)
        raise refusals[0] if refusals else Unavailable("no identity for the API server is known")

    async def _send_as(self, client: Client) -> None:
        record = self._closed or fold_events(self._events)
        if not self._closed or not await self._is_outdated(client, record):
            await client.apply(NODE_SHUTDOWNS, self._node, self._record_object(record), force=True)

    async def _is_outdated(self, client: Client, record: ShutdownRecord) -> bool:
        """Whether the API has a later shutdown of this node, as after the loss of its journal."""
        try:
            there = await client.get(NODE_SHUTDOWNS, self._node)
        except (NotFound, ApiNotPermitted):
            return False
        return str(there.get("spec", {}).get("id", "")) > record.id

    def _report_failure(self, why: str, answer: _Answer) -> _Answer:
        if why != self._failure:
            text = f"this node's shutdown is not recorded at the API server: {why}"
            log.warning("%s", text)
            if answer is _Answer.REFUSED:
                self._notes.append(text)
        self._failure = why
        return answer

    def _record_object(self, record: ShutdownRecord) -> Object:
        obj = to_node_shutdown(record)
        obj["spec"]["id"], obj["metadata"] = obj["metadata"]["name"], {"name": self._node}
        obj["status"]["notes"] = obj["status"]["notes"][-MOST_NOTES:]
        return obj


class RecordingNodeFace:
    """``ports.node.NodeFace`` that also has the record written at the beginning, and waits for it at the end."""

    def __init__(self, face: NodeFace, records: NodeShutdownRecorder) -> None:
        self._face = face
        self._records = records

    def refuse_pods(self) -> None:
        """Calls the face."""
        self._face.refuse_pods()

    async def begin_shutdown(self, deadline: float) -> None:
        """Calls the face; the record follows after FIRST_SECONDS. Raises what the face raises."""
        self._records.write_within(FIRST_SECONDS)
        await self._face.begin_shutdown(deadline)

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Calls the face."""
        self._face.expect_pods(namespaces)

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Calls the face."""
        return await self._face.wait_until_prepared(live, until)

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Calls the face."""
        return await self._face.begin_pod(live, grace, until)

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Calls the face."""
        return await self._face.report_pod_ended(live, exit_codes)

    async def report_finished(self) -> None:
        """Calls the face, and waits for the record for ``wait_seconds``: both at the same time, as the machine waits."""
        writing = asyncio.ensure_future(self._records.wait_written_within(self._records.wait_seconds))
        try:
            await self._face.report_finished()
            await writing
        finally:
            await cancel_and_wait(writing)

    def take_notes(self) -> Sequence[str]:
        """Those of the face, and those of the record."""
        return [*self._face.take_notes(), *self._records.take_notes()]

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Calls the face, and writes the record of the shutdown that is over: it may not have been written then."""
        if last:
            self._records.record_closed(last)
        await self._face.clean_up(last)

    async def mark_ready(self) -> None:
        """Calls the face."""
        await self._face.mark_ready()
