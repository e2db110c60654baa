"""The pods that a node has lost are followed until others have taken their places (pure): for people, nothing waits for it.

A taint that stays until they are Ready would keep a pod away that can run on this node alone, and that would never be Ready.
"""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from lastcall.failover.decisions import remaining
from lastcall.failover.decisions.case import Case, CasePod
from lastcall.failover.decisions.steps import Mark, Step
from lastcall.failover.evidence.lost_pods import ROOM, LostPod, merge_lost, newly_lost
from lastcall.model.fence_policy import FailoverMode

_JOB = "Job"


def record_lost_pods(case: Case, now: float) -> Step | None:
    """Before pods are removed that the mark does not name yet, such as came after the taint, it names them."""
    del now
    assert case.mark
    if case.policy is None or case.policy.mode is not FailoverMode.ENFORCE:
        return None
    goes = [pod for pod in remaining.pods_to_remove_now(case) if case.is_boot_dead or pod.uid in case.gone]
    lost = _with_pods(case, goes)
    new = {one.uid for one in lost} - {one.uid for one in case.mark.lost}
    if not new:
        return None
    return Mark(mark=replace(case.mark, lost=lost), why=f"what takes the place of node {case.name}'s pods is followed")


def pods_to_record(case: Case) -> tuple[LostPod, ...]:
    """What the mark is to name when the boot is proved to be over: all that has to go by then."""
    return _with_pods(case, remaining.pods_to_remove_now(case))


def known_lost_pods(case: Case) -> tuple[LostPod, ...]:
    """What the mark names, and what this controller has removed without one."""
    both = (*(case.mark.lost if case.mark else ()), *case.removed)
    return merge_lost(filter(_becomes_ready, both), (), room=_mark_room(case))


def followed_pods(case: Case) -> tuple[LostPod, ...]:
    """Those whose replacements are told of: not who turns out to stay."""
    stays = {pod.uid for pod in case.pods if remaining.stay_reason(pod)}
    return tuple(one for one in known_lost_pods(case) if one.uid not in stays)


def pods_to_look_up(case: Case) -> tuple[LostPod, ...]:
    """Those whose replacements are looked for now: there is time for it when nothing is left that we have to do."""
    over = case.node is not None and case.mark is not None and case.mark.boot_id == case.node.boot_id
    ours = case.policy is not None and case.policy.detach and bool(remaining.unused_attachments(case))
    return followed_pods(case) if over and not remaining.pods_to_remove(case) and not ours else ()


def replacement_readiness(case: Case, places: Collection[str]) -> Mapping[str, bool]:
    """``Case.replacements``; ``places``: the uids of those that were lost and have been replaced."""
    found: dict[str, bool] = {}
    for one in followed_pods(case):
        found[one.key] = found.get(one.key, True) and one.uid in places
    return found


def _with_pods(case: Case, pods: Iterable[CasePod]) -> tuple[LostPod, ...]:
    before = known_lost_pods(case)
    lost = [(pod.lost, pod.made) for pod in pods if pod.lost and _becomes_ready(pod.lost)]
    return merge_lost(before, newly_lost(before, lost), room=_mark_room(case))


def _becomes_ready(one: LostPod) -> bool:
    """A Job may make no other pod, and that may be done before anybody has seen it Ready: its own status tells."""
    return one.kind != _JOB


def _mark_room(case: Case) -> int:
    return case.node.room if case.node else ROOM
