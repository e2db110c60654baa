"""One run of ``lastcall drain``: takes the steps that are decided, waits for what follows, and decides again."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence

from msgspec.structs import replace

from lastcall.aio import OrderedTaskGroup, cancel_and_wait, timeout, wait_any
from lastcall.drain.decisions import node_patches
from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.decisions.next_steps import decide_steps
from lastcall.drain.decisions.steps import (
    CordonNode,
    DeletePod,
    EvictPod,
    FailPod,
    FinishNode,
    NodeOutcome,
    SkipPod,
    Step,
    TakeOwnership,
)
from lastcall.drain.execution.budget_sight import BudgetSight
from lastcall.drain.execution.chosen_pods import PodChooser
from lastcall.drain.execution.drain_observer import DrainObserver
from lastcall.drain.execution.node_sight import NodeSight
from lastcall.drain.execution.node_writer import NodeWriter
from lastcall.drain.execution.patience import ask_patiently
from lastcall.drain.execution.pod_requests import PodRequests, RequestParts
from lastcall.drain.execution.seen_pods import PodSight
from lastcall.errors import LastcallError
from lastcall.model.base import Facts
from lastcall.model.drain_facts import DrainNode
from lastcall.model.failover_mark import describe_failover
from lastcall.ports.drain import (
    BudgetWatch,
    DrainCluster,
    DrainWatch,
    NodeOwner,
    NodeOwnership,
    PodEvictions,
)
from lastcall.ports.node import Clock

_GATHER = 0.02
"""Seconds in which changes are collected before the next decision: many pods change at the same time."""

_GOODBYE = 5.0
"""Seconds for what an interrupted run still writes."""


class NodeIsOwned(LastcallError):
    """Somebody else has a node to himself."""


class DrainParts(Facts, frozen=True):
    """The outside of a run."""

    cluster: DrainCluster
    evictions: PodEvictions
    ownership: NodeOwnership
    watch: DrainWatch
    budgets: BudgetWatch
    clock: Clock
    observer: DrainObserver


class DrainRun:
    """``course`` has the nodes, which exist; ``nodes`` are these as they were read at the beginning."""

    def __init__(
        self,
        course: DrainCourse,
        nodes: Sequence[DrainNode],
        parts: DrainParts,
        *,
        writer: NodeWriter,
        choose: PodChooser,
        uncordons: bool = False,
    ) -> None:
        self.course = course
        self._nodes, self._parts, self._writer, self._choose, self._uncordons = nodes, parts, writer, choose, uncordons
        self._clock, self._observer = parts.clock, parts.observer
        self._failovers = {one.name: describe_failover(one.metadata.annotations) for one in nodes}
        self._node_sight = NodeSight(parts.cluster, parts.watch)
        self._sight = PodSight(parts.clock, ignores_opt_outs=course.settings.ignore_opt_outs)
        self._begun = self._clock.boottime()
        self._spent: Mapping[str, float] = {}
        self._criteria = ""
        self._watching: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[NodeOwner] | None = None
        self._changed = asyncio.Event()
        self._budgets = BudgetSight(parts.budgets, parts.clock, self._changed.set)
        self._requests = self._make_requests()
        self._told: set[str] = set()

    def _make_requests(self) -> PodRequests:
        parts = RequestParts(
            cluster=self._parts.cluster,
            evictions=self._parts.evictions,
            clock=self._clock,
            observer=self._observer,
            tell_answer=self._changed.set,
            tell_spent=self._budgets.start,
        )
        return PodRequests(parts, grace=self.course.settings.grace_period, has_end=self.course.limits.has_end)

    @property
    def has_failed(self) -> bool:
        """Whether a node is not drained."""
        return any(one.outcome is not NodeOutcome.DRAINED for one in self.course.nodes)

    async def run(self, *, before_release: Callable[[], Awaitable[None]] | None = None) -> None:
        """Until nothing is left to do. NodeIsOwned, or the API's error, if it cannot begin.

        Cancelled, it says so on the Nodes and releases them; they stay cordoned. ``before_release`` is what must be
        done at every end while nobody else can have the nodes; it bounds its time.
        """
        self._look_at(self._nodes)
        try:
            await self._take_steps()
        except BaseException as error:
            await self._stop_asking()
            with contextlib.suppress(TimeoutError):
                async with timeout(_GOODBYE):
                    await self._say_goodbye(error)
            raise
        finally:
            await self._stop_asking()
            try:
                if before_release is not None:
                    await before_release()
            finally:
                await self._release()

    async def _take_steps(self) -> None:
        while True:
            await self._observe()
            now = self._clock.boottime()
            decision = decide_steps(self.course, now)
            self._observer.show(self.course, now)
            if decision.is_over:
                await self._requests.join()
                return
            self._changed.clear()
            await self._take_all(decision.steps)
            if not any(isinstance(step, EvictPod | DeletePod) for step in decision.steps) and decision.steps:
                continue
            await self._wait(decision.wake_at)

    async def _take_all(self, steps: Sequence[Step]) -> None:
        """Takes the steps side by side: those of one decision do not depend on each other."""
        group = OrderedTaskGroup()
        try:
            for step in steps:
                if isinstance(step, EvictPod | DeletePod):
                    self._requests.start(step)
                else:
                    group.start(self._take(step), type(step).__name__)
            await group.join()
        finally:
            await group.cancel()

    async def _wait(self, wake_at: float | None) -> None:
        """Until something changes, or it is time."""
        waiting: list[asyncio.Future[object]] = [asyncio.ensure_future(self._changed.wait())]
        if wake_at is not None:
            waiting.append(asyncio.ensure_future(self._sleep(max(wake_at - self._clock.boottime(), 0.0))))
        lasting = [one for one in (self._watching, self._keeping) if one is not None]
        try:
            await wait_any(*waiting, *lasting)
        finally:
            await cancel_and_wait(*waiting)
        if self._watching and self._watching.done():
            self._watching.result()
        if self._keeping and self._keeping.done():
            owner, self._keeping = self._keeping.result(), None
            self._set_nodes(trouble=f"{owner.holder} has taken node {owner.node} over (Lease {owner.lease})")
        await self._clock.sleep(_GATHER)

    async def _sleep(self, seconds: float) -> object:
        await self._clock.sleep(seconds)
        return None

    # -- what is known -------------------------------------------------------------------------------------------------

    async def _observe(self) -> None:
        watch = self._parts.watch
        is_sure = self._keeping is None or self._parts.ownership.is_sure
        self.course = replace(self.course, is_sure=is_sure)
        if self._watching is None or not watch.is_complete:
            return
        nodes = await self._node_sight.look([one.name for one in self.course.nodes if one.outcome is None])
        if nodes is None:
            self.course = replace(self.course, is_sure=False)
        else:
            self._look_at(list(nodes.values()))
            self._find_deleted(nodes)
        self.course = replace(self.course, seen=self._sight.look(watch.pods, (nodes or watch.nodes).values()))
        if self.course.pods is None:
            self._choose_pods()
        requests = self._requests
        rooms = self._budgets.look(pod for pod in watch.pods if requests.is_refused(pod.metadata.uid))
        self.course = replace(self.course, pods=requests.pods, asked=requests.uids_under_way, rooms=rooms)
        self._tell_gone()

    def _look_at(self, nodes: Sequence[DrainNode]) -> None:
        for node in nodes:
            known = self.course.node(node.name)
            if known.trouble or known.outcome is not None:
                continue
            trouble = node_patches.find_trouble(node, known_failover=self._failovers[node.name])
            if not trouble and known.is_cordoned and not node.spec.unschedulable:
                trouble = "somebody else has uncordoned it"
            if trouble:
                self._set_node(node.name, trouble=trouble)

    def _find_deleted(self, known: Mapping[str, DrainNode]) -> None:
        for node in self.course.nodes:
            if node.name not in known and not node.trouble and node.outcome is None:
                self._set_node(node.name, trouble="its Node was deleted")

    def _choose_pods(self) -> None:
        chosen = self._choose(self._parts.watch.pods)
        for node, text in chosen.refused:
            self._set_node(node, trouble=f"a pod has come to it that the drain may not remove: {text}")
        self._criteria = chosen.criteria
        lost = {node.name for node in self.course.nodes if node.trouble}
        self._requests.add(one for one in chosen.targets if one.node not in lost)

    def _tell_gone(self) -> None:
        for pod in self.course.pods or ():
            uid = pod.target.uid
            if uid not in self._told and not pod.failure and not self.course.is_here(pod):
                self._told.add(uid)
                evicts = not self.course.settings.disable_eviction and pod.forced_at is None
                self._observer.tell_gone(pod.target, evicts=evicts)

    def _set_nodes(self, **changes: object) -> None:
        for node in self.course.nodes:
            if node.outcome is None:
                self._set_node(node.name, **changes)

    def _set_node(self, name: str, **changes: object) -> None:
        nodes = tuple(_change(one, changes) if one.name == name else one for one in self.course.nodes)
        self.course = replace(self.course, nodes=nodes)

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def _take(self, step: Step) -> None:
        match step:
            case TakeOwnership():
                await self._take_ownership(step)
            case CordonNode():
                await self._cordon(step.node)
            case EvictPod() | DeletePod():
                raise AssertionError(step)
            case FailPod():
                self._requests.fail(step.target, step.why)
            case SkipPod():
                self._told.add(step.target.uid)
                self._requests.skip(step.target, step.why)
            case FinishNode():
                await self._finish(step)

    async def _take_ownership(self, step: TakeOwnership) -> None:
        answer = await ask_patiently(lambda: self._parts.ownership.take(step.nodes), self._clock)
        if isinstance(answer, NodeOwner):
            raise NodeIsOwned(_owner_text(answer))
        for warning in answer.warnings:
            self._observer.warn(warning)
        self._spent = answer.spent
        self._keeping = asyncio.create_task(self._parts.ownership.keep(), name="keep the nodes")
        self.course = replace(self.course, is_owned=True)

    async def _cordon(self, name: str) -> None:
        already = await self._writer.cordon(name)
        self._observer.tell_cordoned(name, already=already)
        self._set_node(name, is_cordoned=True)
        if all(one.is_cordoned or one.trouble for one in self.course.nodes):
            self._begin()

    def _begin(self) -> None:
        """The watch begins after the cordons, so that its lists have every pod, and every Node as it was cordoned."""
        self._watching = asyncio.create_task(self._watch(), name="watch the nodes")
        self.course = replace(self.course, watched_since=self._clock.boottime())
        if self.course.limits.timeout:
            spent = self._seconds_before()
            self.course = replace(self.course, deadline=self._begun + self.course.limits.timeout - spent, spent=spent)

    async def _watch(self) -> None:
        async def tell() -> None:
            seen = -1
            while True:
                seen = await self._parts.watch.wait_for_change(seen)
                self._changed.set()

        telling = asyncio.create_task(tell(), name="tell of changes")
        try:
            await self._parts.watch.run()
        finally:
            await cancel_and_wait(telling)

    def _seconds_before(self) -> float:
        """Seconds that earlier runs of this drain took."""
        marks = self._writer.marks.items()
        return max((mark.spent + self._spent.get(name, 0.0) for name, mark in marks), default=0.0)

    async def _finish(self, step: FinishNode) -> None:
        is_drained = step.outcome is NodeOutcome.DRAINED
        state = node_patches.COMPLETED if is_drained else node_patches.FAILED
        uncordons = self._uncordons and not is_drained
        message = self._criteria if is_drained else step.why
        if await self._writer.finish(step.node, state, message, spent=0, uncordon=uncordons):
            self._observer.tell_uncordoned(step.node)
        self._set_node(step.node, outcome=step.outcome)
        if any(one.outcome is None for one in self.course.nodes):
            await self._parts.ownership.release([step.node])
        self._observer.tell_finished(step.node, step.outcome, step.why)

    # -- the end -------------------------------------------------------------------------------------------------------

    async def _stop_asking(self) -> None:
        """The nodes are kept meanwhile."""
        await self._requests.cancel()
        if self._watching is not None:
            await cancel_and_wait(self._watching)
        await self._budgets.stop()

    async def _release(self) -> None:
        if self._keeping is not None:
            await cancel_and_wait(self._keeping)
        await self._parts.ownership.release()

    async def _say_goodbye(self, error: BaseException) -> None:
        """What the Nodes say of a run that ends early. Its time counts for the next one."""
        interrupted = isinstance(error, asyncio.CancelledError)
        state = node_patches.INTERRUPTED if interrupted else node_patches.FAILED
        why = "interrupted; it stays cordoned" if interrupted else str(error)
        spent = self._seconds_before() + self._clock.boottime() - self._begun
        uncordons = self._uncordons and not interrupted
        unfinished = [node.name for node in self.course.nodes if node.outcome is None]
        for pod in self.course.pods or ():
            if self.course.is_here(pod):
                self._requests.withdraw(pod.target)
        took = await asyncio.gather(
            *(self._writer.finish(name, state, why, spent=spent, uncordon=uncordons) for name in unfinished)
        )
        await self._requests.join()
        for name in (name for name, uncordoned in zip(unfinished, took, strict=True) if uncordoned):
            self._observer.tell_uncordoned(name)


def _change(node: NodeProgress, changes: Mapping[str, object]) -> NodeProgress:
    return replace(node, **changes)


def _owner_text(owner: NodeOwner) -> str:
    why = f" ({owner.reason})" if owner.reason else ""
    since = f" since {owner.since}" if owner.since else ""
    mend = "nothing was evicted: wait until it is done, or end it"
    return f"node {owner.node}: {owner.holder} has it{since}{why}, by Lease {owner.lease}; {mend}"
