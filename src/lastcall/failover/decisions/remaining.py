"""What remains on a node under failover (pure): what must go, what stays and why, and what is stuck."""

from collections.abc import Iterable, Iterator

from lastcall import names
from lastcall.failover.decisions.case import Case, CaseAttachment, CasePod
from lastcall.failover.evidence import out_of_service_taint

_SHOWN = 3


def stay_reason(pod: CasePod) -> str:
    """Why a pod stays, as the end of a sentence; empty if it must go."""
    if pod.mirror:
        return "is a static pod, which only its kubelet ends"
    if pod.disabled:
        return f"may not be forced, by its annotation {names.FAILOVER_ANNOTATION}"
    return "tolerates the taint out-of-service" if pod.tolerates else ""


def is_stuck(pod: CasePod) -> bool:
    """Whether it is force-deleted and only finalizers of other controllers keep its object."""
    return pod.terminating and pod.grace == 0 and pod.finished and bool(pod.finalizers)


def pods_to_remove(case: Case) -> list[CasePod]:
    """The pods that must go and still exist."""
    return [pod for pod in case.pods if not stay_reason(pod) and not is_stuck(pod)]


def pods_to_remove_now(case: Case) -> list[CasePod]:
    """Those that need not wait for a toleration; the others go only after the taint has existed for their time."""
    return [pod for pod in pods_to_remove(case) if not pod.patient]


def patient_pods(case: Case) -> list[CasePod]:
    """The pods that stay only until their ``tolerationSeconds`` are over."""
    return [pod for pod in case.pods if pod.patient and pod.tolerates and not (pod.mirror or pod.disabled)]


def attachments_to_remove(case: Case) -> list[CaseAttachment]:
    """The VolumeAttachments that must go: all but those of staying pods."""
    kept = {volume for pod in case.pods if stay_reason(pod) for volume in pod.volumes}
    return [one for one in case.attachments if one.volume not in kept]


def unused_attachments(case: Case) -> list[CaseAttachment]:
    """Those that no pod uses any more, and that are not being deleted yet."""
    used = {volume for pod in pods_to_remove(case) for volume in pod.volumes}
    return [one for one in attachments_to_remove(case) if one.volume not in used and not one.deleting]


def has_anything_to_remove(case: Case) -> bool:
    """Whether a pod or VolumeAttachment must go."""
    return bool(pods_to_remove(case) or attachments_to_remove(case))


def has_our_taint(case: Case) -> bool:
    """Whether a taint equal to ours is on the Node, whoever set it."""
    return case.node is not None and any(out_of_service_taint.is_like_ours(one) for one in case.node.taints)


def has_out_of_service_taint(case: Case) -> bool:
    """Whether any out-of-service taint is on the Node."""
    return case.node is not None and any(one.key == out_of_service_taint.OURS.key for one in case.node.taints)


def remaining_text(case: Case) -> str:
    """What remains on the node, and what keeps it."""
    return "; ".join(_text_parts(case)) or "nothing is left on it"


def _text_parts(case: Case) -> Iterator[str]:
    if found := pods_to_remove(case):
        yield f"left: {first_names(pod.key for pod in found)}"
    for pod in case.pods:
        if is_stuck(pod):
            yield f"{pod.key} is kept by its finalizers {', '.join(pod.finalizers)}"
        elif pod.refused and not stay_reason(pod):
            yield f"{pod.key} is refused: {pod.refused.why}"
    if volumes := attachments_to_remove(case):
        yield f"attached: {first_names(one.name for one in volumes)}"
    for one in volumes:
        if one.deleting and one.finalizers:
            yield f"{one.name} is kept by its finalizers {', '.join(one.finalizers)}"
        elif one.refused:
            yield f"{one.name} is refused: {one.refused.why}"


def first_names(found: Iterable[str]) -> str:
    """The first names in order, and the number of the others."""
    every = sorted(found)
    rest = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
