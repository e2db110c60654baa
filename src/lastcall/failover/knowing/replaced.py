"""What counts as the replacement of a pod that a node has lost (pure)."""

from collections.abc import Iterable, Mapping

from lastcall.failover.knowing.lost import STATEFUL, Lost
from lastcall.model.observed import LivePod


def replaced(
    lost: Iterable[Lost], found: Iterable[LivePod], *, node: str, before: Mapping[str, str]
) -> Mapping[str, str]:
    """Which pod has taken the place of which one that ``node`` has lost, both by uid.

    It runs elsewhere, is Ready and is not being deleted. A StatefulSet makes it anew under its name. Of other owners any pod
    that was made since counts, for one that was lost only. Times have whole seconds: one that was made in the very second of
    the deletion counts, as most controllers are done within that.

    What has taken a place (``before``) keeps it.
    """
    every = list(lost)
    result = dict(before)
    apart = {one.uid for one in every} | set(before.values())
    free = {one.metadata.uid: one for one in found if _serves(one, node) and one.metadata.uid not in apart}
    missing = [one for one in every if one.uid not in before]
    # Who was lost last has the fewest pods to choose from: all that are new enough for him are so for the others.
    for one in sorted(missing, key=lambda one: one.since, reverse=True):
        if pod := next((pod for pod in free.values() if _replaces(pod, one)), None):
            result[one.uid] = pod.metadata.uid
            del free[pod.metadata.uid]
    return result


def _serves(pod: LivePod, node: str) -> bool:
    return pod.ready and not pod.terminating and pod.spec.node_name not in ("", node)


def _replaces(pod: LivePod, one: Lost) -> bool:
    if pod.metadata.namespace != one.namespace:
        return False
    if one.kind == STATEFUL:
        return pod.metadata.name == one.name
    return pod.owner is not None and pod.owner.uid == one.owner and pod.metadata.creation_timestamp >= one.since
