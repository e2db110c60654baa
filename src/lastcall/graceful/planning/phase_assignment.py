"""Which pod ends in which phase, and with how much time.

The rules are the kubelet's (KEP-2712, pkg/kubelet/nodeshutdown): every group takes the pods from its own priority up to
the next group's, those below the lowest group go to the lowest, and the lowest group goes first.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from lastcall.model.pods import Pod, pod_priority
from lastcall.model.shutdown import PhasePlan


def assign_pods(groups: Sequence[PhasePlan], pods: Iterable[Pod]) -> tuple[tuple[Pod, ...], ...]:
    """The pods of each group, parallel to ``groups`` (ascending by priority), by namespace and name.

    Finished pods are in no group; without groups there is nowhere to be.
    """
    phases: list[list[Pod]] = [[] for _ in groups]
    if groups:
        for pod in pods:
            if not pod.is_finished:
                phases[index_for(groups, pod_priority(pod))].append(pod)
    return tuple(tuple(sorted(phase, key=_by_name)) for phase in phases)


def index_for(groups: Sequence[PhasePlan], priority: int) -> int:
    """The index of the group with the highest priority not above ``pod_priority``; 0 if all are above.

    ``groups`` are ascending by priority; there is at least one.
    """
    return max(0, bisect_right(groups, priority, key=lambda group: group.priority) - 1)


def grace_seconds(pod: Pod, seconds: int) -> int:
    """The seconds that a pod gets in a phase of so many: its own terminationGracePeriodSeconds, the phase's if smaller.

    A pod that says nothing gets all of the phase. (The API server fills in 30; a static pod's manifest need not.)
    """
    asked = pod.spec.termination_grace_period_seconds
    return seconds if asked is None else min(asked, seconds)


def _by_name(pod: Pod) -> tuple[str, str]:
    return pod.metadata.namespace, pod.metadata.name
