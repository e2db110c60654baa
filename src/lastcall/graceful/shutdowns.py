"""Begins, resumes, cancels and closes shutdowns: one at a time, each with its journal."""

import asyncio
import datetime as dt
import logging
import math
from collections.abc import Callable, Sequence

from lastcall.aio import Group, cancel
from lastcall.errors import LastcallError
from lastcall.graceful import pacing
from lastcall.graceful.config import AgentConfig
from lastcall.graceful.journal import Past, past
from lastcall.graceful.recorder import Listener, Recorder
from lastcall.graceful.run import Run
from lastcall.model.record import fold
from lastcall.model.shutdown import (
    AnyEvent,
    Cancelled,
    Mode,
    Noted,
    PhasePlan,
    Released,
    Resumed,
    Shutdown,
    Started,
    from_lines,
)
from lastcall.ports import Clock, Journals, NodeFace, PodRuntime

DISK_SECONDS = 1.0
"""How long what goes to the disk waits at the beginning: an fsync and its thread would hold up the SIGTERMs."""

log = logging.getLogger(__name__)


class Shutdowns:
    """This node's shutdowns. ``wake`` is called when the phases of the one under way are over."""

    def __init__(
        self,
        *,
        node_name: str,
        boot_id: str,
        runtime: PodRuntime,
        node: NodeFace,
        journals: Journals,
        clock: Clock,
        listeners: Sequence[Listener],
        wake: Callable[[], None],
    ) -> None:
        self._node_name = node_name
        self._boot_id = boot_id
        self._runtime = runtime
        self._node = node
        self._journals = journals
        self._clock = clock
        self._wake = wake
        self._recorder = Recorder(listeners)
        self._background = Group()
        self._run: Run | None = None
        self._task: asyncio.Task[None] | None = None
        self._began: float | None = None
        self._ended: float | None = None
        self._writing = asyncio.Lock()
        self._looked_back = False
        self.deadline = 0.0
        """When the lock is released at the latest (CLOCK_BOOTTIME)."""

    @property
    def over(self) -> bool:
        """Whether nothing is left to do but to release the lock: the phases are over, or the deadline is."""
        return self._task is None or self._task.done() or self._clock.boottime() >= self.deadline

    async def look_back(self, *, preparing: bool) -> None:
        """Once after the start, as soon as logind has answered: closes what was cancelled while nobody looked."""
        if self._looked_back or preparing:
            return
        self._looked_back = True
        latest = self._latest()
        record = latest[0] if latest else None
        if record and past(record, boot_id=self._boot_id, preparing=False) is Past.CANCELLED:
            self._recorder.use(self._journals.reopen(record.id))
            self._began = record.wall
            await self.come_back("it was called off while no agent was running")

    def begin(self, config: AgentConfig, *, granted: float | None, how: str, lock: bool) -> None:
        """Begins, or goes on with what an earlier life of this program began in this boot."""
        first_look = not self._looked_back
        self._looked_back = True
        latest = self._latest() if first_look else None
        record = latest[0] if latest else None
        verdict = past(record, boot_id=self._boot_id, preparing=True)
        if verdict is Past.LEAVE:
            self._node.refuse_pods()
            self.deadline = 0.0
        elif verdict is Past.GO_ON and latest:
            self._go_on(*latest, lock=lock)
        else:
            self._start(config, granted=granted, how=how, lock=lock)

    async def come_back(self, why: str) -> None:
        """The machine stays up: no further pod is begun, the node is ready again."""
        if self._run:
            self._run.stop()
            self._background.start(self._run.wind_up(), "see off the pods whose end has begun")
        self._recorder.tell(Cancelled(at=self._clock.boottime(), why=why))
        self._run = self._task = None
        await self._node.back()
        self._write_state(ended=self._clock.wall())

    def released(self) -> None:
        """The lock has been closed: writes that down. At once, no I/O but the journal's."""
        phases_over = self._task is None or self._task.done()
        why = "all phases are over" if phases_over else "the time is over"
        self._recorder.tell(Released(at=self._clock.boottime(), why=why))
        self._write_state(ended=self._clock.wall())

    async def leave(self) -> None:
        """The program ends; what is under way is left for its next life."""
        if self._task:
            await cancel(self._task)
        if self._run:
            await self._run.abandon()
        await self._background.cancel()
        await self._recorder.settle()

    # ------------------------------------------------------------------------------------------------------------------

    def _start(self, config: AgentConfig, *, granted: float | None, how: str, lock: bool) -> None:
        now, wall = self._clock.boottime(), self._clock.wall()
        requested = float(config.requested_seconds)
        deadline = pacing.deadline(now, requested, requested if granted is None else granted)
        started = Started(
            at=now,
            id=_id(wall),
            node=self._node_name,
            boot_id=self._boot_id,
            wall=wall,
            how=how,
            mode=config.mode,
            requested=requested,
            granted=None if granted == math.inf else granted,
            deadline=deadline,
            lock=lock,
            phases=config.groups,
        )
        try:
            self._recorder.use(self._journals.create(started.id))
        except (OSError, LastcallError) as error:
            log.error("no journal can be written, going on without it: %s", error)
            self._recorder.use(None)
        self._recorder.tell(started)
        self._carry_out(config.groups, deadline=deadline, mode=config.mode, wall=wall)

    def _go_on(self, record: Shutdown, events: Sequence[AnyEvent], *, lock: bool) -> None:
        self._recorder.remind(events)
        self._recorder.use(self._journals.reopen(record.id))
        self._recorder.tell(Resumed(at=self._clock.boottime(), lock=lock))
        plan = [PhasePlan(priority=phase.priority, seconds=phase.seconds) for phase in record.phases]
        deadline = record.boottime + record.deadline
        self._carry_out(plan, deadline=deadline, mode=record.mode, wall=record.wall, before=record)

    def _carry_out(
        self, plan: Sequence[PhasePlan], *, deadline: float, mode: Mode, wall: float, before: Shutdown | None = None
    ) -> None:
        self.deadline = deadline
        self._began = wall
        self._run = Run(
            plan,
            deadline=deadline,
            mode=mode,
            runtime=self._runtime,
            node=self._node,
            clock=self._clock,
            tell=self._recorder.tell,
            before=before,
        )
        self._task = asyncio.create_task(self._guarded(self._run), name="shutdown")
        self._task.add_done_callback(lambda _: self._wake())
        self._write_state(ended=None)

    async def _guarded(self, run: Run) -> None:
        """A mistake of ours must neither keep the machine from going down nor go unseen."""
        try:
            await run.carry_out()
        except Exception as error:
            log.exception("the shutdown broke off")
            self._recorder.tell(Noted(at=self._clock.boottime(), text=f"broke off: {type(error).__name__}: {error}"))

    def _write_state(self, *, ended: float | None) -> None:
        """The journal and the kubelet's state file go to the disk: at the end at once, at the beginning a little later.

        Only the machine's death makes a difference, and that is what the lock holds up.
        """
        self._ended = ended
        self._background.start(self._to_disk(after=DISK_SECONDS if ended is None else 0.0), "to disk")

    async def _to_disk(self, *, after: float) -> None:
        await self._clock.sleep(after)
        self._recorder.sync()
        async with self._writing:  # in turn, so that the newer state is the one that stays
            await self._journals.write_kubelet_state(self._began, self._ended)

    def _latest(self) -> tuple[Shutdown, Sequence[AnyEvent]] | None:
        try:
            latest = self._journals.latest()
            events = from_lines(latest[1]) if latest else []
            return (fold(events), events) if events else None
        except (OSError, ValueError, LastcallError) as error:
            log.error("the newest journal cannot be read: %s", error)
            return None


def _id(wall: float) -> str:
    """The moment in UTC, to the millisecond: sorts by time and is quickly typed."""
    moment = dt.datetime.fromtimestamp(wall, dt.UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{moment.microsecond // 1000:03d}"
