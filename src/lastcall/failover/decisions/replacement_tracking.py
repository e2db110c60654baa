"""Tracks lost pods until their replacements are Ready (pure); for output only, no step waits for it.

A taint that stayed until they are Ready would block a pod that can run only on this node, and that would never become
Ready.
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
    """Records pods in the mark before they are removed, such as pods that came after the taint."""
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
    """The pods to record when the boot is proved to be over: all that must go by then."""
    return _with_pods(case, remaining.pods_to_remove_now(case))


def known_lost_pods(case: Case) -> tuple[LostPod, ...]:
    """The pods that the mark records, and those that this controller removed without one."""
    both = (*(case.mark.lost if case.mark else ()), *case.removed)
    return merge_lost(filter(_becomes_ready, both), (), room=_mark_room(case))


def followed_pods(case: Case) -> tuple[LostPod, ...]:
    """The lost pods whose replacements are reported; without those that turn out to stay."""
    stays = {pod.uid for pod in case.pods if remaining.stay_reason(pod)}
    return tuple(one for one in known_lost_pods(case) if one.uid not in stays)


def pods_to_look_up(case: Case) -> tuple[LostPod, ...]:
    """The lost pods whose replacements are looked up now: only after lastcall's own work on the node is done."""
    over = case.node is not None and case.mark is not None and case.mark.boot_id == case.node.boot_id
    ours = case.policy is not None and case.policy.detach and bool(remaining.unused_attachments(case))
    return followed_pods(case) if over and not remaining.pods_to_remove(case) and not ours else ()


def replacement_readiness(case: Case, places: Collection[str]) -> Mapping[str, bool]:
    """``Case.replacements``; ``places``: the UIDs of lost pods that have a Ready replacement."""
    found: dict[str, bool] = {}
    for one in followed_pods(case):
        found[one.key] = found.get(one.key, True) and one.uid in places
    return found


def _with_pods(case: Case, pods: Iterable[CasePod]) -> tuple[LostPod, ...]:
    before = known_lost_pods(case)
    lost = [(pod.lost, pod.made) for pod in pods if pod.lost and _becomes_ready(pod.lost)]
    return merge_lost(before, newly_lost(before, lost), room=_mark_room(case))


def _becomes_ready(one: LostPod) -> bool:
    """A Job may create no further pod, and a replacement may finish before it is seen Ready; its own status tells."""
    return one.kind != _JOB


def _mark_room(case: Case) -> int:
    return case.node.room if case.node else ROOM
