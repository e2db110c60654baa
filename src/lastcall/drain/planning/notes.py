"""What a person should know before a drain although it holds nothing: each with what can be done about it (pure)."""

from collections.abc import Callable, Iterator

from lastcall.drain.planning.budget_obstacles import list_surged_pods
from lastcall.drain.planning.device_notes import list_device_notes
from lastcall.drain.planning.drain_case import DrainCase, DrainNote, name_pods, name_some
from lastcall.drain.planning.foreign_owners import list_owner_notes
from lastcall.drain.planning.guard_obstacles import list_guard_notes
from lastcall.drain.planning.pod_filters import DELETE_EMPTYDIR_DATA, FORCE, FilterFate, controller_of, is_of_daemon_set
from lastcall.drain.planning.room_elsewhere import list_room_notes
from lastcall.drain.planning.volume_notes import list_volume_notes
from lastcall.drain.planning.workload_owners import find_singletons
from lastcall.model.drain_facts import DrainPod, pod_name

REQUEST_EVICT_ONLY = "descheduler.alpha.kubernetes.io/request-evict-only"
"""On a pod whose eviction another program turns into a move, such as KubeVirt's live migration."""


def list_notes(case: DrainCase) -> Iterator[DrainNote]:
    """All notes, in a fixed order."""
    for rule in _RULES:
        yield from rule(case)


def _note_singletons(case: DrainCase) -> Iterator[DrainNote]:
    surged = set(map(pod_name, list_surged_pods(case)))
    if pods := [pod for pod in find_singletons(case.evicted, case.facts) if pod_name(pod) not in surged]:
        yield DrainNote(
            text=f"down until their replacements are ready, being the only replica: {name_pods(pods)}",
            mend="raise their replicas before the drain",
        )


def _note_surges(case: DrainCase) -> Iterator[DrainNote]:
    if pods := list_surged_pods(case):
        yield DrainNote(
            text=f"--surge gives their workloads one more pod for a time: {name_pods(pods)}",
            mend="see that another node has room for it",
        )


def _note_local_data(case: DrainCase) -> Iterator[DrainNote]:
    pods = [pod for pod in _living(case) if any(volume.empty_dir is not None for volume in pod.spec.volumes or ())]
    if pods and case.settings.delete_emptydir_data:
        yield DrainNote(text=f"the emptyDir data is lost of: {name_pods(pods)}", mend="copy what is needed first")


def _note_bare_pods(case: DrainCase) -> Iterator[DrainNote]:
    if not case.settings.force:
        return
    if bare := [pod for pod in _living(case) if controller_of(pod) is None]:
        yield DrainNote(text=f"nothing makes these pods again: {name_pods(bare)}", mend="save their manifests first")
    if orphans := [pod for pod in _living(case) if is_of_daemon_set(pod)]:
        yield DrainNote(
            text=f"their DaemonSet does not exist: {name_pods(orphans)}", mend=f"{FORCE} evicts them; nothing is needed"
        )


def _note_further_mends(case: DrainCase) -> Iterator[DrainNote]:
    """A refusal names the first option that a pod needs, as kubectl does."""
    several = [one for one in case.judged if one.verdict.fate is FilterFate.REFUSE and len(one.mends) > 1]
    if several:
        yield DrainNote(
            text=f"more than one option is needed for: {name_pods(one.pod for one in several)}",
            mend=f"give both {FORCE} and {DELETE_EMPTYDIR_DATA}",
        )


def _note_moved_pods(case: DrainCase) -> Iterator[DrainNote]:
    pods = [pod for pod in _living(case) if REQUEST_EVICT_ONLY in (pod.metadata.annotations or {})]
    if pods:
        yield DrainNote(
            text=f"another program answers their evictions by moving them, such as a live migration: {name_pods(pods)}",
            mend="wait for it; the pods go when they have moved",
        )


def _note_unknown_daemon_sets(case: DrainCase) -> Iterator[DrainNote]:
    if case.facts.daemon_sets is not None:
        return
    pods = [one.pod for one in case.judged if not one.pod.is_finished and is_of_daemon_set(one.pod)]
    owners = sorted({f"{pod.metadata.namespace}/{owner.name}" for pod in pods if (owner := controller_of(pod))})
    if owners:
        yield DrainNote(
            text=f"no DaemonSet is known; these are assumed to exist: {name_some(owners)}",
            mend="add the DaemonSets to the state",
        )


def _living(case: DrainCase) -> Iterator[DrainPod]:
    return (pod for pod in case.evicted if not pod.is_finished)


_RULES: tuple[Callable[[DrainCase], Iterator[DrainNote]], ...] = (
    _note_further_mends,
    _note_unknown_daemon_sets,
    list_owner_notes,
    _note_singletons,
    _note_surges,
    _note_local_data,
    _note_bare_pods,
    list_guard_notes,
    _note_moved_pods,
    list_volume_notes,
    list_room_notes,
    list_device_notes,
)
