"""The failover controller: watches all nodes, and fails over those that are gone, while it leads.

It observes whether it leads or not, so that a new leader knows what his eyes have seen; it acts only within ``act``, which
the leader election runs and cancels. What is under way then is given up at the next await: all of it can be gone on with by
whoever leads next, from what the cluster says.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lastcall.aio import Group, Signal, first
from lastcall.errors import LastcallError
from lastcall.failover.deciding.case import Case
from lastcall.failover.deciding.concluding import Terms
from lastcall.failover.doing.acting import Acting
from lastcall.failover.doing.devices import Devices
from lastcall.failover.doing.gathering import Gathering
from lastcall.failover.doing.heeding import Heeding
from lastcall.failover.doing.observing import Observing
from lastcall.failover.doing.outside import Cluster, Leadership
from lastcall.failover.doing.pool import Pool
from lastcall.failover.doing.reading import Reading
from lastcall.failover.doing.replacing import Replacements
from lastcall.failover.doing.worker import Worker
from lastcall.failover.knowing.own_clock import PERIOD
from lastcall.failover.telling.happenings import Broke, Happening, Listener, Rested, Stopped
from lastcall.model.observed import Heard, Watched
from lastcall.ports import Clock
from lastcall.ports_fences import Fences

CONCURRENCY = 50
"""Calls to the API server that are under way at a time."""

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
"""Seconds after a mistake of ours about a node, and after many."""
_SHORTEST_PAUSE, _LONGEST_TO_LEARN = 0.5, 8.0
"""Seconds after a list of Nodes that has failed, and after many."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Outside:
    """Everything that the controller acts through."""

    clock: Clock
    cluster: Cluster
    leadership: Leadership
    fences: Fences


@dataclass(frozen=True, kw_only=True)
class Status:
    """What the controller tells about itself. ``waiting_for`` is empty when it has seen everything once."""

    leads: bool
    waiting_for: str
    nodes: int
    in_trouble: int
    marked: int


class Controller:
    """``observe`` and ``act`` run side by side; ``act`` only while this controller leads."""

    def __init__(
        self, outside: Outside, terms: Terms, *, listeners: Sequence[Listener] = (), concurrency: int = CONCURRENCY
    ) -> None:
        self._clock = outside.clock
        self._cluster = outside.cluster
        self._leadership = outside.leadership
        self._fences = outside.fences
        self._listeners = tuple(listeners)
        self.observing = Observing(self._touched)
        self._gathering = Gathering(outside.cluster, outside.leadership, self.observing, outside.clock, terms)
        self._pool = Pool(concurrency, outside.clock)
        self._acting = Acting(
            outside.cluster, outside.leadership, outside.clock, self._pool, me=terms.me, tell=self._tell
        )
        self._workers: dict[str, Worker] = {}
        self._heeding = Heeding(
            outside.cluster, self.observing, outside.clock, self._gathering.guard, self._troubled, self._tell
        )
        self._group: Group | None = None
        self._seen = Signal()

    # -- always --------------------------------------------------------------------------------------------------------

    async def observe(self) -> None:
        """Hears what is watched, and looks at its own clocks. Never ends."""
        await first(self._cluster.follow(self._hear), self._look())

    def _hear(self, heard: Heard) -> None:
        self.observing.hear(heard, self._clock.boottime())
        if not heard.name:
            self._seen.set()
        if heard.what is Watched.POLICIES:
            self._heeding.changed.set()

    async def _look(self) -> None:
        """Each second: who has become late, and whether time has jumped."""
        while True:
            now = self._clock.boottime()
            if self.observing.clock.look(now, self._clock.wall()):
                log.warning("time has jumped: nobody is fenced until the view of the cluster is to be trusted again")
            self.observing.count(now)
            again = self.observing.late(now)
            wait = PERIOD if again is None else max(0.0, min(PERIOD, again - now))
            await self._clock.sleep(max(wait, 0.01))

    # -- while it leads ------------------------------------------------------------------------------------------------

    async def act(self) -> None:
        """Fails nodes over, until it is cancelled. What a worker has begun is given up then."""
        self._gathering.leads_since = self._clock.boottime()
        while not self.observing.ready:
            await self._seen.next()
        self._group = Group()
        try:
            self._gathering.guard.begin()
            self._group.start(self._learn(), "what others have fenced")
            now = self._clock.boottime()
            claimed = self._gathering.guard.claimed
            for name in list(self.observing.knots):
                if name in claimed or self.observing.in_trouble(name, now):
                    self._start(name)
            await self._heeding.run()
        finally:
            group, self._group = self._group, None
            self._workers.clear()
            self._tell(Stopped())
            await group.cancel()

    async def _learn(self) -> None:
        """Lists all Nodes: until that has succeeded nothing is fenced. The nodes in trouble are looked at with what it tells."""
        pause = _SHORTEST_PAUSE
        while not await self._has_learned():
            await self._clock.sleep(pause)
            pause = min(_LONGEST_TO_LEARN, 2 * pause)
        for name in self._gathering.guard.claimed:
            if name in self.observing.knots and name not in self._workers:
                self._start(name)
        for worker in self._workers.values():
            worker.wake()

    async def _has_learned(self) -> bool:
        try:
            found = await self._cluster.nodes()
            return self._gathering.guard.learn(found, now=self._clock.boottime(), wall=self._clock.wall())
        except LastcallError as error:
            log.warning("all Nodes are to be read before any is fenced, and cannot be: %s", error)
        except Exception:
            log.exception("no node is fenced: what is on all Nodes is not understood, by a mistake of this program")
        return False

    def _touched(self, name: str) -> None:
        worker = self._workers.get(name)
        if worker:
            worker.wake()
        elif self._group and self.observing.in_trouble(name, self._clock.boottime()):
            self._start(name)

    def _start(self, name: str) -> None:
        assert self._group
        worker = Worker(
            name,
            self.observing,
            self._gathering,
            self._acting,
            Devices(self._fences, self._clock),
            Replacements(self._cluster, self._clock),
            Reading(self._cluster, self._clock),
            self._clock,
            self._tell,
            lambda: self._pool.busy,
        )
        self._workers[name] = worker
        self._heeding.changed.set()
        self._group.start(self._work(worker), f"failover of {name}")

    async def _work(self, worker: Worker) -> None:
        """A mistake of ours about one node, as by an object that nobody foresaw, holds up this one alone."""
        pause = _FIRST_PAUSE
        while not await self._went_well(worker):
            await self._clock.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)
        if self._workers.get(worker.name) is worker:
            del self._workers[worker.name]
            self._tell(Rested(node=worker.name))
        knot = self.observing.knots.get(worker.name)
        if knot:
            knot.seen.forget()

    async def _went_well(self, worker: Worker) -> bool:
        try:
            await worker.run()
        except Exception as error:
            log.exception("what is done about node %s has broken off by a mistake of this program", worker.name)
            worker.sentence = f"broken off by a mistake of this program, and begun anew after a pause: {error!r}"
            self._tell(Broke(node=worker.name, error=error))
            return False
        return True

    # -- what others see -----------------------------------------------------------------------------------------------

    @property
    def workers(self) -> Sequence[Worker]:
        """One for each node in trouble, while this controller leads."""
        return tuple(self._workers.values())

    def _troubled(self) -> Mapping[str, Case | None]:
        """The nodes in trouble as they were last decided about, by name; None: not yet."""
        found = self._workers.items()
        return {name: worker.gathered.case if worker.gathered else None for name, worker in found}

    @property
    def status(self) -> Status:
        """As it is now."""
        now = self._clock.boottime()
        knots = self.observing.knots.values()
        return Status(
            leads=self._leadership.leads,
            waiting_for=self.observing.waiting_for,
            nodes=len(knots),
            in_trouble=sum(knot.in_trouble(now) for knot in knots),
            marked=sum(bool(knot.node.mark) for knot in knots),
        )

    def _tell(self, happening: Happening) -> None:
        for listener in self._listeners:
            listener(happening)
