"""The failover controller: watches all nodes, and fails over lost ones while it leads.

It observes whether or not it leads, so that a new leader already has its own observations. It acts only within ``act``,
which the leader election runs and cancels. Running work is then abandoned at its next await: any later leader can
continue it from the state of the cluster.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lastcall.aio import OrderedTaskGroup, Signal, wait_first
from lastcall.errors import LastcallError
from lastcall.failover.controller.call_limiter import CallLimiter
from lastcall.failover.controller.case_builder import CaseBuilder
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.controller_ports import FailoverApi, Leadership
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.failover.controller.node_reading import NodeReading
from lastcall.failover.controller.node_reconciler import NodeReconciler
from lastcall.failover.controller.policy_status import PolicyStatusWriter
from lastcall.failover.controller.replacement_finder import ReplacementFinder
from lastcall.failover.controller.step_executor import StepExecutor
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.case_facts import ControllerTerms
from lastcall.failover.evidence.clock_jumps import PERIOD
from lastcall.failover.reporting.controller_events import (
    Happening,
    LeadershipEnded,
    Listener,
    NodeSettled,
    ReconcilerFailed,
)
from lastcall.model.observed import ObjectChange, WatchedKind
from lastcall.ports.fences import FenceFactory
from lastcall.ports.node import Clock

CONCURRENCY = 50
"""The number of concurrent calls to the API server."""

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
"""Seconds after an internal error about a node, and after many."""
_SHORTEST_PAUSE, _LONGEST_TO_LEARN = 0.5, 8.0
"""Seconds after a failed list of Nodes, and after many."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ControllerPorts:
    """The ports of the controller."""

    clock: Clock
    cluster: FailoverApi
    leadership: Leadership
    fences: FenceFactory


@dataclass(frozen=True, kw_only=True)
class ControllerStatus:
    """The controller's report on itself. ``waiting_for`` is empty once all watched kinds have been listed."""

    leads: bool
    waiting_for: str
    nodes: int
    in_trouble: int
    marked: int


class FailoverController:
    """The controller. ``observe`` and ``act`` run concurrently; ``act`` only while this controller leads."""

    def __init__(
        self,
        outside: ControllerPorts,
        terms: ControllerTerms,
        *,
        listeners: Sequence[Listener] = (),
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._clock = outside.clock
        self._cluster = outside.cluster
        self._leadership = outside.leadership
        self._fences = outside.fences
        self._listeners = tuple(listeners)
        self.observing = ClusterView(self._wake_reconciler)
        self._gathering = CaseBuilder(outside.cluster, outside.leadership, self.observing, outside.clock, terms)
        self._pool = CallLimiter(concurrency, outside.clock)
        self._acting = StepExecutor(
            outside.cluster, outside.leadership, outside.clock, self._pool, me=terms.me, tell=self._notify_listeners
        )
        self._workers: dict[str, NodeReconciler] = {}
        self._heeding = PolicyStatusWriter(
            outside.cluster,
            self.observing,
            outside.clock,
            self._gathering.guard,
            self._cases_in_trouble,
            self._notify_listeners,
        )
        self._group: OrderedTaskGroup | None = None
        self._seen = Signal()

    # -- always --------------------------------------------------------------------------------------------------------

    async def observe(self) -> None:
        """Follows the watched objects, and checks the clocks. Never ends."""
        await wait_first(self._cluster.follow_objects(self._handle_change), self._check_clocks())

    def _handle_change(self, heard: ObjectChange) -> None:
        self.observing.handle_change(heard, self._clock.boottime())
        if not heard.name:
            self._seen.set()
        if heard.what is WatchedKind.POLICIES:
            self._heeding.changed.set()

    async def _check_clocks(self) -> None:
        """Every second: finds overdue nodes and detects clock jumps."""
        while True:
            now = self._clock.boottime()
            if self.observing.clock.detect_jump(now, self._clock.wall()):
                log.warning("time has jumped: no node is fenced until the view of the cluster is reliable again")
            self.observing.count_reachable(now)
            again = self.observing.touch_late_nodes(now)
            wait = PERIOD if again is None else max(0.0, min(PERIOD, again - now))
            await self._clock.sleep(max(wait, 0.01))

    # -- while it leads ------------------------------------------------------------------------------------------------

    async def act(self) -> None:
        """Fails nodes over until it is cancelled. The work of the reconcilers is then abandoned."""
        self._gathering.leads_since = self._clock.boottime()
        while not self.observing.has_synced:
            await self._seen.next()
        self._group = OrderedTaskGroup()
        try:
            self._gathering.guard.start_leading()
            self._group.start(self._learn_marks(), "what others have fenced")
            now = self._clock.boottime()
            claimed = self._gathering.guard.claimed_nodes
            for name in list(self.observing.tracked_nodes):
                if name in claimed or self.observing.is_in_trouble(name, now):
                    self._start_reconciler(name)
            await self._heeding.run()
        finally:
            group, self._group = self._group, None
            self._workers.clear()
            self._notify_listeners(LeadershipEnded())
            await group.cancel()

    async def _learn_marks(self) -> None:
        """Lists all Nodes; until that succeeds nothing is fenced. Then checks the nodes in trouble again."""
        pause = _SHORTEST_PAUSE
        while not await self._try_learn_marks():
            await self._clock.sleep(pause)
            pause = min(_LONGEST_TO_LEARN, 2 * pause)
        for name in self._gathering.guard.claimed_nodes:
            if name in self.observing.tracked_nodes and name not in self._workers:
                self._start_reconciler(name)
        for worker in self._workers.values():
            worker.wake()

    async def _try_learn_marks(self) -> bool:
        try:
            found = await self._cluster.list_nodes()
            return self._gathering.guard.learn_nodes(found, now=self._clock.boottime(), wall=self._clock.wall())
        except LastcallError as error:
            log.warning("cannot list all Nodes, which is required before any is fenced: %s", error)
        except Exception:
            log.exception("no node is fenced: an internal error occurred while reading the marks of all Nodes")
        return False

    def _wake_reconciler(self, name: str) -> None:
        worker = self._workers.get(name)
        if worker:
            worker.wake()
        elif self._group and self.observing.is_in_trouble(name, self._clock.boottime()):
            self._start_reconciler(name)

    def _start_reconciler(self, name: str) -> None:
        assert self._group
        worker = NodeReconciler(
            name,
            self.observing,
            self._gathering,
            self._acting,
            NodeFencers(self._fences, self._clock),
            ReplacementFinder(self._cluster, self._clock),
            NodeReading(self._cluster, self._clock),
            self._clock,
            self._notify_listeners,
            lambda: self._pool.is_busy,
        )
        self._workers[name] = worker
        self._heeding.changed.set()
        self._group.start(self._run_reconciler(worker), f"failover of {name}")

    async def _run_reconciler(self, worker: NodeReconciler) -> None:
        """Contains an internal error about one node, such as one from an unforeseen object, to that node."""
        pause = _FIRST_PAUSE
        while not await self._run_once(worker):
            await self._clock.sleep(pause)
            pause = min(_LONGEST_PAUSE, 2 * pause)
        if self._workers.get(worker.name) is worker:
            del self._workers[worker.name]
            self._notify_listeners(NodeSettled(node=worker.name))
        knot = self.observing.tracked_nodes.get(worker.name)
        if knot:
            knot.seen.forget_facts()

    async def _run_once(self, worker: NodeReconciler) -> bool:
        try:
            await worker.run()
        except Exception as error:
            log.exception("the failover of node %s was interrupted by an internal error", worker.name)
            worker.sentence = f"interrupted by an internal error, and restarted after a pause: {error!r}"
            self._notify_listeners(ReconcilerFailed(node=worker.name, error=error))
            return False
        return True

    # -- what others see -----------------------------------------------------------------------------------------------

    @property
    def reconcilers(self) -> Sequence[NodeReconciler]:
        """One reconciler for each node in trouble, while this controller leads."""
        return tuple(self._workers.values())

    @property
    def is_removing(self) -> bool:
        """Whether calls that remove pods or volumes of any node are under way."""
        return self._pool.is_working

    def _cases_in_trouble(self) -> Mapping[str, Case | None]:
        """The nodes in trouble by name, with the Case of the last decision; None: not decided yet."""
        found = self._workers.items()
        return {name: worker.gathered.case if worker.gathered else None for name, worker in found}

    @property
    def status(self) -> ControllerStatus:
        """The current status."""
        now = self._clock.boottime()
        knots = self.observing.tracked_nodes.values()
        return ControllerStatus(
            leads=self._leadership.leads,
            waiting_for=self.observing.waiting_for,
            nodes=len(knots),
            in_trouble=sum(knot.is_in_trouble(now) for knot in knots),
            marked=sum(bool(knot.node.mark_text) for knot in knots),
        )

    def _notify_listeners(self, happening: Happening) -> None:
        for listener in self._listeners:
            listener(happening)
