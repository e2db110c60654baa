"""The boot is proved to be over (pure): the taint, the pods, the volumes, and what is waited for.

Only here anything is forced, but for the pods that a node has said itself to have ended (``leaving``).
"""

from msgspec.structs import replace

from lastcall.failover.deciding import following, pacing, remaining
from lastcall.failover.deciding.case import Case, PodLeft
from lastcall.failover.deciding.steps import Detach, ForceDelete, Step, Taint, Wait
from lastcall.model.fence_policy import Mode


def taint(case: Case, now: float) -> Step | None:
    """The taint: nothing new comes, kube-controller-manager forces too, and volumes are detached at once.

    One that somebody has set by hand does as well, and stays his. The pods that go for it are named in the same write.
    """
    del now
    assert case.node
    assert case.mark
    if remaining.our_taint(case):
        return None
    return Taint(
        mark=replace(case.mark, tainted=True, lost=following.wanted(case)), boot_id=case.node.boot_id, why=_proof(case)
    )


def only_tainted(case: Case, now: float) -> Step | None:
    """The policy forces nothing: the rest is kube-controller-manager's."""
    del now
    assert case.policy
    if case.policy.mode is not Mode.TAINT_ONLY:
        return None
    return Wait(f"policy {case.policy.name} only taints, the rest is kube-controller-manager's; {_left(case)}")


def force(case: Case, now: float) -> Step | None:
    """All pods that have to go are removed by force, whether they terminate or not: their kubelet will never end them."""
    assert case.node
    pods = tuple(_allowed(case, now))
    return ForceDelete(pods=pods, boot_id=case.node.boot_id, why=_proof(case)) if pods else None


def detach(case: Case, now: float) -> Step | None:
    """What no pod uses any more is detached, if no attach-detach controller does it, whose cache would be wrong then."""
    assert case.node
    assert case.policy
    if not case.policy.detach:
        return None
    found = tuple(one for one in remaining.loose(case) if one.refused is None or now >= one.refused.again)
    return Detach(attachments=found, boot_id=case.node.boot_id, why=_proof(case)) if found else None


def awaited(case: Case, now: float) -> Step:
    """What others have to do is waited for, and what was refused, or comes anew, has its time."""
    refusals = [one.refused for one in remaining.going(case)] + [one.refused for one in remaining.attached(case)]
    later = [one.again for one in refusals if one and one.again > now]
    anew = ""
    if remaining.going(case) and now < (due := _due(case)):
        later.append(due)
        anew = f"; pods were removed by force from it {case.forced.times} times in a row, and the next time has a pause"
    return Wait(f"node {case.name} is failed over: {_left(case)}{anew}", until=min(later, default=None))


def _due(case: Case) -> float:
    assert case.node
    return pacing.due(case.forced, case.node.boot_id)


def _allowed(case: Case, now: float) -> list[PodLeft]:
    if now < _due(case):
        return []
    return [pod for pod in remaining.going(case) if pod.refused is None or now >= pod.refused.again]


def _proof(case: Case) -> str:
    reasons = case.verdict.reasons if case.verdict else ()
    return f"the boot of node {case.name} is over: {'; '.join(reasons)}"


def _left(case: Case) -> str:
    return remaining.sentence(case)
