"""The next steps of a drain, given its course and the time (pure).

The order is: own all nodes, cordon them, then the pods tier by tier; a node is finished when nothing is left of it. The
same course gives the same steps, so a run may end after each of them, and another one goes on.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from lastcall.drain.decisions.drain_course import DrainCourse, NodeProgress
from lastcall.drain.decisions.end_of_time import describe_global_timeout, find_end, steps_at_end
from lastcall.drain.decisions.pod_progress import SPENT_SECONDS, PodProgress
from lastcall.drain.decisions.steps import (
    CordonNode,
    DeletePod,
    DrainDecision,
    EvictPod,
    FailPod,
    FinishNode,
    NodeOutcome,
    SkipPod,
    Step,
    TakeOwnership,
)

MOST_REQUESTS = 48
"""So many requests for pods are under way at once."""


LIST_PATIENCE = 30.0
"""Seconds for the first lists of the watch, though the time is over."""


def decide_steps(course: DrainCourse, now: float) -> DrainDecision:
    """The next steps."""
    if all(one.outcome for one in course.nodes):
        return DrainDecision(is_over=True)
    able = sorted(one.name for one in course.nodes if not one.trouble)
    if not able and course.pods is None:
        return _finish_nodes(course, ())
    if not course.is_owned:
        return DrainDecision(steps=(TakeOwnership(nodes=tuple(able)),))
    if waiting := [name for name in able if not course.node(name).is_cordoned]:
        return DrainDecision(steps=tuple(CordonNode(node=name) for name in waiting))
    if course.pods is None:
        return _wait_for_pods(course, now)
    steps = [*_give_up(course, now)]
    if not steps:
        steps = [one for one in _end_time(course, now) if course.is_sure or isinstance(one, FailPod)]
    if not steps and course.is_sure:
        steps = [*_ask_tier(course, course.pods, now)]
    if steps:
        return DrainDecision(steps=tuple(steps), wake_at=_wake_at(course, now))
    return _finish_nodes(course, course.pods, wake_at=_wake_at(course, now))


def _wait_for_pods(course: DrainCourse, now: float) -> DrainDecision:
    """The watch has not told which pods there are; when the time is over, the nodes are given up.

    The time may be over before this run has begun: earlier runs count.
    """
    end = None
    if course.deadline is not None and course.watched_since is not None:
        end = max(course.deadline, course.watched_since + LIST_PATIENCE)
    if end is None or now < end:
        return DrainDecision(wake_at=end)
    why = f"{describe_global_timeout(course)}; its pods could not be listed"
    left = [node.name for node in course.nodes if node.outcome is None]
    steps = tuple(FinishNode(node=name, outcome=NodeOutcome.FAILED, why=why) for name in left)
    return DrainDecision(steps=steps)


def _finish_nodes(course: DrainCourse, pods: Sequence[PodProgress], *, wake_at: float | None = None) -> DrainDecision:
    of_nodes: dict[str, list[PodProgress]] = defaultdict(list)
    for pod in pods:
        of_nodes[pod.target.node].append(pod)
    steps = [
        _finish_node(node, of_nodes[node.name])
        for node in course.nodes
        if node.outcome is None and all(node.trouble or course.is_settled(pod) for pod in of_nodes[node.name])
    ]
    return DrainDecision(steps=tuple(steps), wake_at=wake_at)


def _finish_node(node: NodeProgress, pods: Sequence[PodProgress]) -> FinishNode:
    failed = [pod for pod in pods if pod.failure]
    if node.trouble or failed:
        why = node.trouble or "; ".join(f"{pod.target.key}: {pod.failure}" for pod in failed[:3])
        more = f"; and {len(failed) - 3} pods more" if len(failed) > 3 and not node.trouble else ""
        return FinishNode(node=node.name, outcome=NodeOutcome.FAILED, why=why + more)
    return FinishNode(node=node.name, outcome=NodeOutcome.DRAINED)


def _give_up(course: DrainCourse, now: float) -> Iterator[Step]:
    """Pods of nodes in trouble, pods that others depended on if one of these failed, and those deleted long ago."""
    troubles = {one.name: one.trouble for one in course.nodes}
    others_failed = any(pod.failure for pod in course.pods or () if not pod.target.is_depended_on)
    for pod in course.pods or ():
        if course.is_settled(pod) or pod.target.uid in course.asked:
            continue
        if trouble := troubles[pod.target.node]:
            yield FailPod(target=pod.target, why=trouble)
        elif pod.target.is_depended_on and others_failed and not _is_ending(course, pod):
            yield FailPod(target=pod.target, why="not asked for: pods that depend on it could not be evicted")
        elif _is_skipped(course, pod, now):
            limit = course.settings.skip_wait_for_delete_timeout
            why = f'pod "{pod.target.name}" has DeletionTimestamp older than {limit} seconds, skipping'
            yield SkipPod(target=pod.target, why=why)


def _is_skipped(course: DrainCourse, pod: PodProgress, now: float) -> bool:
    limit, since = course.settings.skip_wait_for_delete_timeout, course.seen[pod.target.uid].overdue_since
    return limit > 0 and since is not None and now - since > limit


def _end_time(course: DrainCourse, now: float) -> Iterator[Step]:
    for pod in course.pods or ():
        if course.is_settled(pod) or pod.target.uid in course.asked:
            continue
        end = find_end(course, pod)
        if end is not None and now >= end:
            yield from steps_at_end(course, pod, end, now)


def _is_ending(course: DrainCourse, pod: PodProgress) -> bool:
    return pod.accepted_at is not None or course.seen[pod.target.uid].terminating_since is not None


def _ask_tier(course: DrainCourse, pods: Sequence[PodProgress], now: float) -> Iterator[Step]:
    """The requests for pods of the first tier that is not gone."""
    left = [pod for pod in pods if not course.is_settled(pod)]
    if not left:
        return
    tier = min(pod.target.tier for pod in left)
    open_ = [pod for pod in left if pod.target.tier == tier and _may_be_asked(course, pod, now)]
    room = MOST_REQUESTS - len(course.asked)
    for pod in [*_choose_pods(course, open_, now)][: max(room, 0)]:
        if course.settings.disable_eviction:
            yield DeletePod(target=pod.target, grace=course.settings.grace_period)
        else:
            yield EvictPod(target=pod.target)


def _may_be_asked(course: DrainCourse, pod: PodProgress, now: float) -> bool:
    if course.seen[pod.target.uid].opt_out or (_is_ending(course, pod) and not _ends_too_late(course, pod)):
        return False
    end = find_end(course, pod)
    return end is None or now < end


def _ends_too_late(course: DrainCourse, pod: PodProgress) -> bool:
    """Whether somebody else has deleted the pod with a longer grace period than is asked for: one request shortens it."""
    wanted, given = course.settings.grace_period, course.seen[pod.target.uid].grace
    return pod.accepted_at is None and wanted is not None and given is not None and wanted < given


def _choose_pods(course: DrainCourse, pods: Iterable[PodProgress], now: float) -> Iterator[PodProgress]:
    """Those that may be asked for now, one of each workload in turn, so that its budgets go on side by side.

    A budget that refuses one pod of a workload refuses the others too. So as long as the last answer for a workload
    was a refusal, one pod of it is asked for at a time: the one whose turn is longest ago. A pod that a webhook or
    a responder holds is asked for on its own, because its guard counts the requests for each pod.
    """
    groups: dict[str, list[PodProgress]] = defaultdict(list)
    for pod in pods:
        groups[pod.target.uid if pod.is_held else pod.target.owner].append(pod)
    chosen = [[*_choose_of_group(course, group, now)] for group in groups.values()]
    for turn in range(max(map(len, chosen), default=0)):
        yield from (group[turn] for group in chosen if turn < len(group))


def _choose_of_group(course: DrainCourse, group: Sequence[PodProgress], now: float) -> Iterator[PodProgress]:
    if not any(pod.refusal for pod in group):
        yield from (pod for pod in group if pod.target.uid not in course.asked)
        return
    if any(pod.target.uid in course.asked for pod in group) or now < max(_retry_at(course, pod) for pod in group):
        return
    never = float("-inf")
    yield min(group, key=lambda pod: never if pod.last_asked is None else pod.last_asked)


def _retry_at(course: DrainCourse, pod: PodProgress) -> float:
    """When a pod may be asked for again: at once when its budget has made room, seldom while it is known to be spent."""
    room = course.rooms.get(pod.target.uid)
    if room is None or pod.last_asked is None or not pod.refusal:
        return pod.retry_at
    if not room.is_open:
        return max(pod.retry_at, pod.last_asked + SPENT_SECONDS)
    return room.changed_at if room.changed_at > pod.last_asked else pod.retry_at


def _wake_at(course: DrainCourse, now: float) -> float | None:
    """When something is due although nothing happens; what depends on more than one time is looked at each second."""
    times: list[float] = [] if course.is_sure else [now + 1.0]
    for pod in course.pods or ():
        if course.is_settled(pod):
            continue
        end = find_end(course, pod)
        times += [_retry_at(course, pod), *([] if end is None else [end])]
        skips, since = course.settings.skip_wait_for_delete_timeout, course.seen[pod.target.uid].overdue_since
        if skips and since is not None:
            times.append(since + skips + 1e-3)
        if end is not None and end <= now:
            times.append(now + 1.0)
    return min((one for one in times if one > now), default=None)
