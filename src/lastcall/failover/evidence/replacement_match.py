"""Matches replacement pods with the pods that a node lost (pure)."""

from collections.abc import Iterable, Mapping

from lastcall.failover.evidence.lost_pods import STATEFUL, LostPod
from lastcall.model.observed import FailoverPod


def match_replacements(
    lost: Iterable[LostPod], found: Iterable[FailoverPod], *, node: str, before: Mapping[str, str]
) -> Mapping[str, str]:
    """The replacement of each pod that ``node`` lost, both by UID.

    A replacement runs elsewhere, is Ready and is not being deleted. A StatefulSet's has the same name. For other owners
    any pod created since then counts, for one lost pod only. Times have whole seconds: a pod created in the very second
    of the deletion counts, because most controllers react within that second.

    A pod in ``before`` keeps its match.
    """
    every = list(lost)
    result = dict(before)
    apart = {one.uid for one in every} | set(before.values())
    free = {one.metadata.uid: one for one in found if _is_ready_elsewhere(one, node) and one.metadata.uid not in apart}
    missing = [one for one in every if one.uid not in before]
    # The pod lost last has the fewest candidates: every pod that is new enough for it is new enough for the others.
    for one in sorted(missing, key=lambda one: one.since, reverse=True):
        if pod := next((pod for pod in free.values() if _can_replace(pod, one)), None):
            result[one.uid] = pod.metadata.uid
            del free[pod.metadata.uid]
    return result


def _is_ready_elsewhere(pod: FailoverPod, node: str) -> bool:
    return pod.is_ready and not pod.is_terminating and pod.spec.node_name not in ("", node)


def _can_replace(pod: FailoverPod, one: LostPod) -> bool:
    if pod.metadata.namespace != one.namespace:
        return False
    if one.kind == STATEFUL:
        return pod.metadata.name == one.name
    return (
        pod.controller_owner is not None
        and pod.controller_owner.uid == one.owner
        and pod.metadata.creation_timestamp >= one.since
    )
