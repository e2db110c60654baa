"""ReplicaSets: run the wanted number of pods (``k8s.io/kubernetes/pkg/controller/replicaset``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall_lab.apiserver.values.object_meta import timestamp
from lastcall_lab.controllers.framework.actions import Action, Decision, status_patches
from lastcall_lab.controllers.framework.view import ActionRefusal, Object, ObjectRef, View, controller_of, ref_of
from lastcall_lab.controllers.objects import conditions, pods
from lastcall_lab.controllers.objects.ownership import (
    OwnerKind,
    affected_workloads,
    claim_objects,
    create_pod_action,
    delete_pod_actions,
    object_labels,
)

RESOURCE = "replicasets.apps"
KIND = OwnerKind("apps/v1", "ReplicaSet", RESOURCE)
BURST = 500
"""The maximum number of pods created or deleted at once."""
FAILURE = "ReplicaFailure"


class ReplicaSetController:
    """Reconciles a ReplicaSet when it, one of its pods, or a matching orphan changes."""

    name = "replicaset"
    resources: Sequence[str] = (RESOURCE, "pods")

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The set itself, or the sets that the pod affects."""
        return [ref_of(RESOURCE, obj)] if resource == RESOURCE else affected_workloads(obj, KIND, view)

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Pods to adopt, release, create or delete, and the status."""
        wanted = view.get(*key)
        if wanted is None:
            return Decision()
        own, patches = claim_objects(wanted, KIND, "pods", view)
        if moved := tuple(patch for patch in patches if _is_claimable(patch.ref, view)):
            return Decision(moved)
        alive = [pod for pod in own if pods.is_active(pod)]
        goes = _surplus_pods(wanted, alive, view, now)
        going = {pod["metadata"]["uid"] for pod in goes}
        stays = [pod for pod in alive if pod["metadata"]["uid"] not in going]
        status, again = _replica_set_status(wanted, stays, sum(map(pods.is_terminating, own)) + len(goes), now)
        if told := _failure_conditions(wanted, len(alive), view.last_refusal(self.name, key), now):
            status["conditions"] = told
        made = [] if wanted["metadata"].get("deletionTimestamp") else _create_pods(wanted, len(alive))
        return Decision((*status_patches(key, wanted, status), *made, *_delete_pods(wanted, goes)), again)


def _is_claimable(place: ObjectRef, view: View) -> bool:
    """Finished pods and pods being deleted keep their owner (``replica_set.go: syncReplicaSet``)."""
    pod = view.get(*place)
    return pod is not None and pods.is_active(pod)


def _sibling_pods(wanted: Object, view: View) -> list[Object]:
    """The pods of all sets of the Deployment; those on crowded nodes are deleted first."""
    owner = controller_of(wanted)
    sets = view.controlled_by(owner["uid"], RESOURCE) if owner else [wanted]
    return [pod for one in sets for pod in view.controlled_by(one["metadata"]["uid"], "pods")]


def _surplus_pods(wanted: Object, alive: Sequence[Object], view: View, now: float) -> Sequence[Object]:
    """The pods to delete now. The status excludes them before their deletion, so that no client counts on them."""
    many = len(alive) - wanted["spec"].get("replicas", 1)
    if many <= 0 or wanted["metadata"].get("deletionTimestamp"):
        return ()
    return pods.pods_to_delete(alive, min(many, BURST), now, _sibling_pods(wanted, view))


def _create_pods(wanted: Object, present: int) -> list[Action]:
    template, missing = wanted["spec"]["template"], min(wanted["spec"].get("replicas", 1) - present, BURST)
    made = (pods.pod_from_template(template, wanted, KIND.api_version, KIND.kind) for _ in range(missing))
    return [create_pod_action(pod, wanted, KIND) for pod in made]


def _delete_pods(wanted: Object, goes: Sequence[Object]) -> Iterator[Action]:
    for pod in goes:
        yield from delete_pod_actions(pod, wanted, KIND)


def _replica_set_status(
    wanted: Object, alive: Sequence[Object], ending: int, now: float
) -> tuple[Object, float | None]:
    """The status, and the seconds until the next ready pod counts as available."""
    spec = wanted["spec"]
    expected = (spec["template"].get("metadata") or {}).get("labels") or {}
    waits = [pods.seconds_until_available(pod, spec.get("minReadySeconds", 0), now) for pod in alive]
    status: Object = {
        "replicas": len(alive),
        "fullyLabeledReplicas": sum(expected.items() <= object_labels(pod).items() for pod in alive),
        "readyReplicas": sum(wait is not None for wait in waits),
        "availableReplicas": sum(wait == 0 for wait in waits),
        "terminatingReplicas": ending,
        "observedGeneration": wanted["metadata"].get("generation", 0),
    }
    later = [wait for wait in waits if wait]
    kept = ("replicas", "terminatingReplicas")
    return {name: value for name, value in status.items() if value or name in kept}, min(later, default=None)


def _failure_conditions(
    wanted: Object, present: int, refusal: ActionRefusal | None, now: float
) -> list[Mapping[str, Any]]:
    """Reports failed creations or deletions until the count is correct; the first reason stays."""
    known = (wanted.get("status") or {}).get("conditions") or ()
    surplus = present - wanted["spec"].get("replicas", 1)
    if not surplus or wanted["metadata"].get("deletionTimestamp"):
        return [*conditions.without_condition(known, FAILURE)]
    if refusal is None or conditions.find_condition(known, FAILURE):
        return [*known]
    reason = "FailedCreate" if surplus < 0 else "FailedDelete"
    why = refusal.why if surplus < 0 else f"unable to delete pods: {refusal.why}"
    told = {"type": FAILURE, "status": "True", "lastTransitionTime": timestamp(now), "reason": reason, "message": why}
    return [*known, told]
