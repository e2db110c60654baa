"""What is left on a node that is failed over (pure): what goes, what stays and why, and what is stuck."""

from collections.abc import Iterable, Iterator

from lastcall import names
from lastcall.failover.decisions.case import Case, CaseAttachment, CasePod
from lastcall.failover.evidence import out_of_service_taint

_SHOWN = 3


def stay_reason(pod: CasePod) -> str:
    """Why a pod is left alone, as the end of a sentence; empty if it goes."""
    if pod.mirror:
        return "is a static pod, which only its kubelet ends"
    if pod.disabled:
        return f"may not be forced, by its annotation {names.FAILOVER_ANNOTATION}"
    return "tolerates the taint out-of-service" if pod.tolerates else ""


def is_stuck(pod: CasePod) -> bool:
    """Whether it was removed by force, and only finalizers of others keep its object."""
    return pod.terminating and pod.grace == 0 and pod.finished and bool(pod.finalizers)


def pods_to_remove(case: Case) -> list[CasePod]:
    """The pods that have to go and have not."""
    return [pod for pod in case.pods if not stay_reason(pod) and not is_stuck(pod)]


def pods_to_remove_now(case: Case) -> list[CasePod]:
    """Those of them that nothing lets stay for a time: the others go only when the node has had the taint for so long."""
    return [pod for pod in pods_to_remove(case) if not pod.patient]


def patient_pods(case: Case) -> list[CasePod]:
    """The pods that stay for a time alone: they go as soon as it is over."""
    return [pod for pod in case.pods if pod.patient and pod.tolerates and not (pod.mirror or pod.disabled)]


def attachments_to_remove(case: Case) -> list[CaseAttachment]:
    """The attachments that have to go: all but those of pods that stay."""
    kept = {volume for pod in case.pods if stay_reason(pod) for volume in pod.volumes}
    return [one for one in case.attachments if one.volume not in kept]


def unused_attachments(case: Case) -> list[CaseAttachment]:
    """Those of them that no pod uses any more, and that nobody has deleted yet."""
    used = {volume for pod in pods_to_remove(case) for volume in pod.volumes}
    return [one for one in attachments_to_remove(case) if one.volume not in used and not one.deleting]


def has_anything_to_remove(case: Case) -> bool:
    """Whether something has to go."""
    return bool(pods_to_remove(case) or attachments_to_remove(case))


def has_our_taint(case: Case) -> bool:
    """Whether a taint exactly as ours is on the Node, whoever has set it."""
    return case.node is not None and any(out_of_service_taint.is_like_ours(one) for one in case.node.taints)


def has_out_of_service_taint(case: Case) -> bool:
    """Whether any taint of that key is on the Node."""
    return case.node is not None and any(one.key == out_of_service_taint.OURS.key for one in case.node.taints)


def remaining_text(case: Case) -> str:
    """What is left, and what keeps it."""
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
    """The first of them by name, and how many others there are."""
    every = sorted(found)
    rest = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
