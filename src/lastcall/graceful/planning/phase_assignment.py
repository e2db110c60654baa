"""Which pod ends in which phase, and with how much time (pure).

The rules are the kubelet's (KEP-2712, pkg/kubelet/nodeshutdown). A group takes the pods from its own priority up to the
next group's. Pods below the lowest group belong to the lowest group. The lowest group goes first.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from lastcall.model.pods import Pod, asked_grace, pod_priority
from lastcall.model.shutdown import PhasePlan


def assign_pods(groups: Sequence[PhasePlan], pods: Iterable[Pod]) -> tuple[tuple[Pod, ...], ...]:
    """The pods of each group, parallel to ``groups`` (ascending by priority), sorted by namespace and name.

    Finished pods belong to no group. Without groups the result is empty.
    """
    phases: list[list[Pod]] = [[] for _ in groups]
    if groups:
        for pod in pods:
            if not pod.is_finished:
                phases[index_for(groups, pod_priority(pod))].append(pod)
    return tuple(tuple(sorted(phase, key=_by_name)) for phase in phases)


def index_for(groups: Sequence[PhasePlan], priority: int) -> int:
    """The index of the group with the highest priority not above ``priority``; 0 if all groups are above it.

    ``groups`` are ascending by priority and not empty.
    """
    return max(0, bisect_right(groups, priority, key=lambda group: group.priority) - 1)


def grace_seconds(pod: Pod, seconds: int) -> int:
    """The pod's grace period in a phase of ``seconds``: what it asks for (``asked_grace``), at most the phase's seconds.

    A pod without one gets the whole phase. (The API server defaults it to 30; a static pod's manifest may omit it.)
    """
    asked = asked_grace(pod)
    return seconds if asked is None else min(asked, seconds)


def _by_name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
