"""ReplicaSets: as many pods as asked for (``k8s.io/kubernetes/pkg/controller/replicaset``)."""

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
"""Pods that are made or deleted at once, at most."""
FAILURE = "ReplicaFailure"


class ReplicaSetController:
    """Looks at a ReplicaSet when it, one of its pods, or an orphan that it selects has changed."""

    name = "replicaset"
    resources: Sequence[str] = (RESOURCE, "pods")

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The set itself, or those that the pod concerns."""
        return [ref_of(RESOURCE, obj)] if resource == RESOURCE else affected_workloads(obj, KIND, view)

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Pods to be adopted, released, made or deleted, and the status."""
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
    """Pods that have finished or are being deleted stay with whoever has them (``replica_set.go: syncReplicaSet``)."""
    pod = view.get(*place)
    return pod is not None and pods.is_active(pod)


def _sibling_pods(wanted: Object, view: View) -> list[Object]:
    """The pods of all sets of the same Deployment: those on crowded nodes are missed least."""
    owner = controller_of(wanted)
    sets = view.controlled_by(owner["uid"], RESOURCE) if owner else [wanted]
    return [pod for one in sets for pod in view.controlled_by(one["metadata"]["uid"], "pods")]


def _surplus_pods(wanted: Object, alive: Sequence[Object], view: View, now: float) -> Sequence[Object]:
    """Those that go now. The status leaves them out before they are deleted, so that nobody counts on them."""
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
    """And the seconds until a pod that is ready counts as available."""
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
    """That pods could not be made or deleted is told until there are as many as wanted; the first reason stays."""
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
