"""Steps after the boot is proved to be over (pure): taint, forced pod deletion, detach, and waiting.

Only these steps force anything, except for the pods that a node itself reported as ended (``shutdown_notice``).
"""

from msgspec.structs import replace

from lastcall.failover.decisions import remaining, removal_backoff, replacement_tracking
from lastcall.failover.decisions.case import Case, CasePod
from lastcall.failover.decisions.steps import Detach, ForceDelete, Step, TaintNode, Wait
from lastcall.model.fence_policy import FailoverMode


def taint_node(case: Case, now: float) -> Step | None:
    """Sets the out-of-service taint: no new pods, and kube-controller-manager forces deletion and detach.

    An equal taint that a person set also serves, and stays theirs. The same write records the pods to be removed.
    """
    del now
    assert case.node
    assert case.mark
    if remaining.has_our_taint(case):
        return None
    return TaintNode(
        mark=replace(case.mark, tainted=True, lost=replacement_tracking.pods_to_record(case)),
        boot_id=case.node.boot_id,
        why=_proof_text(case),
    )


def wait_if_taint_only(case: Case, now: float) -> Step | None:
    """The policy forces nothing itself: kube-controller-manager does the rest."""
    del now
    assert case.policy
    if case.policy.mode is not FailoverMode.TAINT_ONLY:
        return None
    return Wait(
        f"policy {case.policy.name} only taints, the rest is kube-controller-manager's; {_remaining_text(case)}"
    )


def force_delete_pods(case: Case, now: float) -> Step | None:
    """Force-deletes all pods that must go, terminating or not: their kubelet will never end them."""
    assert case.node
    pods = tuple(_deletable_pods(case, now))
    return ForceDelete(pods=pods, boot_id=case.node.boot_id, why=_proof_text(case)) if pods else None


def detach_volumes(case: Case, now: float) -> Step | None:
    """Detaches unused volumes, if no attach-detach controller does; a running one would keep a stale cache."""
    assert case.node
    assert case.policy
    if not case.policy.detach:
        return None
    found = tuple(one for one in remaining.unused_attachments(case) if one.refused is None or now >= one.refused.again)
    return Detach(attachments=found, boot_id=case.node.boot_id, why=_proof_text(case)) if found else None


def wait_for_others(case: Case, now: float) -> Step:
    """Waits for other controllers, and for the pauses of refused or repeated removals."""
    refusals = [one.refused for one in remaining.pods_to_remove(case)] + [
        one.refused for one in remaining.attachments_to_remove(case)
    ]
    later = [one.again for one in refusals if one and one.again > now]
    anew = ""
    if remaining.pods_to_remove(case) and now < (due := _removal_due(case)):
        later.append(due)
        anew = f"; pods were removed by force from it {case.forced.times} times in a row, and the next time has a pause"
    return Wait(f"node {case.name} is failed over: {_remaining_text(case)}{anew}", until=min(later, default=None))


def _removal_due(case: Case) -> float:
    assert case.node
    return removal_backoff.next_removal_at(case.forced, case.node.boot_id)


def _deletable_pods(case: Case, now: float) -> list[CasePod]:
    if now < _removal_due(case):
        return []
    return [pod for pod in remaining.pods_to_remove(case) if pod.refused is None or now >= pod.refused.again]


def _proof_text(case: Case) -> str:
    reasons = case.verdict.reasons if case.verdict else ()
    return f"the boot of node {case.name} is over: {'; '.join(reasons)}"


def _remaining_text(case: Case) -> str:
    return remaining.remaining_text(case)
