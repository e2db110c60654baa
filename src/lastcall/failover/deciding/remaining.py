"""What is left on a node that is failed over (pure): what goes, what stays and why, and what is stuck."""

from collections.abc import Iterable, Iterator

from lastcall import names
from lastcall.failover.deciding.case import AttachmentLeft, Case, PodLeft
from lastcall.failover.knowing import taints

_SHOWN = 3


def stays(pod: PodLeft) -> str:
    """Why a pod is left alone, as the end of a sentence; empty if it goes."""
    if pod.mirror:
        return "is a static pod, which only its kubelet ends"
    if pod.disabled:
        return f"may not be forced, by its annotation {names.FAILOVER_ANNOTATION}"
    return "tolerates the taint out-of-service" if pod.tolerates else ""


def stuck(pod: PodLeft) -> bool:
    """Whether it was removed by force, and only finalizers of others keep its object."""
    return pod.terminating and pod.grace == 0 and pod.finished and bool(pod.finalizers)


def going(case: Case) -> list[PodLeft]:
    """The pods that have to go and have not."""
    return [pod for pod in case.pods if not stays(pod) and not stuck(pod)]


def at_once(case: Case) -> list[PodLeft]:
    """Those of them that nothing lets stay for a time: the others go only when the node has had the taint for so long."""
    return [pod for pod in going(case) if not pod.patient]


def patient(case: Case) -> list[PodLeft]:
    """The pods that stay for a time alone: they go as soon as it is over."""
    return [pod for pod in case.pods if pod.patient and pod.tolerates and not (pod.mirror or pod.disabled)]


def attached(case: Case) -> list[AttachmentLeft]:
    """The attachments that have to go: all but those of pods that stay."""
    kept = {volume for pod in case.pods if stays(pod) for volume in pod.volumes}
    return [one for one in case.attachments if one.volume not in kept]


def loose(case: Case) -> list[AttachmentLeft]:
    """Those of them that no pod uses any more, and that nobody has deleted yet."""
    used = {volume for pod in going(case) for volume in pod.volumes}
    return [one for one in attached(case) if one.volume not in used and not one.deleting]


def anything(case: Case) -> bool:
    """Whether something has to go."""
    return bool(going(case) or attached(case))


def our_taint(case: Case) -> bool:
    """Whether a taint exactly as ours is on the Node, whoever has set it."""
    return case.node is not None and any(taints.like_ours(one) for one in case.node.taints)


def out_of_service(case: Case) -> bool:
    """Whether any taint of that key is on the Node."""
    return case.node is not None and any(one.key == taints.OURS.key for one in case.node.taints)


def sentence(case: Case) -> str:
    """What is left, and what keeps it."""
    return "; ".join(_parts(case)) or "nothing is left on it"


def _parts(case: Case) -> Iterator[str]:
    if found := going(case):
        yield f"left: {named(pod.key for pod in found)}"
    for pod in case.pods:
        if stuck(pod):
            yield f"{pod.key} is kept by its finalizers {', '.join(pod.finalizers)}"
        elif pod.refused and not stays(pod):
            yield f"{pod.key} is refused: {pod.refused.why}"
    if volumes := attached(case):
        yield f"attached: {named(one.name for one in volumes)}"
    for one in volumes:
        if one.deleting and one.finalizers:
            yield f"{one.name} is kept by its finalizers {', '.join(one.finalizers)}"
        elif one.refused:
            yield f"{one.name} is refused: {one.refused.why}"


def named(found: Iterable[str]) -> str:
    """The first of them by name, and how many others there are."""
    every = sorted(found)
    rest = len(every) - _SHOWN
    return ", ".join(every[:_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
