"""ReplicaSets: as many pods as asked for (``k8s.io/kubernetes/pkg/controller/replicaset``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lastcall.lab.apiserver.meta import timestamp
from lastcall.lab.controllers import conditions, pods
from lastcall.lab.controllers.actions import Action, Decision, status_patch
from lastcall.lab.controllers.owning import Kind, claim, creation, deletion, interested, labels
from lastcall.lab.controllers.view import Object, Ref, Refusal, View, controller_of, ref

RESOURCE = "replicasets.apps"
KIND = Kind("apps/v1", "ReplicaSet", RESOURCE)
BURST = 500
"""Pods that are made or deleted at once, at most."""
FAILURE = "ReplicaFailure"


class ReplicaSets:
    """Looks at a ReplicaSet when it, one of its pods, or an orphan that it selects has changed."""

    name = "replicaset"
    resources: Sequence[str] = (RESOURCE, "pods")

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The set itself, or those that the pod concerns."""
        return [ref(RESOURCE, obj)] if resource == RESOURCE else interested(obj, KIND, view)

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """Pods to be adopted, released, made or deleted, and the status."""
        wanted = view.get(*key)
        if wanted is None:
            return Decision()
        own, patches = claim(wanted, KIND, "pods", view)
        if moved := tuple(patch for patch in patches if _lives(patch.ref, view)):
            return Decision(moved)
        alive = [pod for pod in own if pods.active(pod)]
        goes = _surplus(wanted, alive, view, now)
        going = {pod["metadata"]["uid"] for pod in goes}
        stays = [pod for pod in alive if pod["metadata"]["uid"] not in going]
        status, again = _status(wanted, stays, sum(map(pods.terminating, own)) + len(goes), now)
        if told := _conditions(wanted, len(alive), view.refusal(self.name, key), now):
            status["conditions"] = told
        made = [] if wanted["metadata"].get("deletionTimestamp") else _made(wanted, len(alive))
        return Decision((*status_patch(key, wanted, status), *made, *_ended(wanted, goes)), again)


def _lives(place: Ref, view: View) -> bool:
    """Pods that have finished or are being deleted stay with whoever has them (``replica_set.go: syncReplicaSet``)."""
    pod = view.get(*place)
    return pod is not None and pods.active(pod)


def _siblings(wanted: Object, view: View) -> list[Object]:
    """The pods of all sets of the same Deployment: those on crowded nodes are missed least."""
    owner = controller_of(wanted)
    sets = view.owned(owner["uid"], RESOURCE) if owner else [wanted]
    return [pod for one in sets for pod in view.owned(one["metadata"]["uid"], "pods")]


def _surplus(wanted: Object, alive: Sequence[Object], view: View, now: float) -> Sequence[Object]:
    """Those that go now. The status leaves them out before they are deleted, so that nobody counts on them."""
    many = len(alive) - wanted["spec"].get("replicas", 1)
    if many <= 0 or wanted["metadata"].get("deletionTimestamp"):
        return ()
    return pods.to_delete(alive, min(many, BURST), now, _siblings(wanted, view))


def _made(wanted: Object, present: int) -> list[Action]:
    template, missing = wanted["spec"]["template"], min(wanted["spec"].get("replicas", 1) - present, BURST)
    made = (pods.from_template(template, wanted, KIND.api_version, KIND.kind) for _ in range(missing))
    return [creation(pod, wanted, KIND) for pod in made]


def _ended(wanted: Object, goes: Sequence[Object]) -> Iterator[Action]:
    for pod in goes:
        yield from deletion(pod, wanted, KIND)


def _status(wanted: Object, alive: Sequence[Object], ending: int, now: float) -> tuple[Object, float | None]:
    """And the seconds until a pod that is ready counts as available."""
    spec = wanted["spec"]
    expected = (spec["template"].get("metadata") or {}).get("labels") or {}
    waits = [pods.available_in(pod, spec.get("minReadySeconds", 0), now) for pod in alive]
    status: Object = {
        "replicas": len(alive),
        "fullyLabeledReplicas": sum(expected.items() <= labels(pod).items() for pod in alive),
        "readyReplicas": sum(wait is not None for wait in waits),
        "availableReplicas": sum(wait == 0 for wait in waits),
        "terminatingReplicas": ending,
        "observedGeneration": wanted["metadata"].get("generation", 0),
    }
    later = [wait for wait in waits if wait]
    kept = ("replicas", "terminatingReplicas")
    return {name: value for name, value in status.items() if value or name in kept}, min(later, default=None)


def _conditions(wanted: Object, present: int, refusal: Refusal | None, now: float) -> list[Mapping[str, Any]]:
    """That pods could not be made or deleted is told until there are as many as wanted; the first reason stays."""
    known = (wanted.get("status") or {}).get("conditions") or ()
    surplus = present - wanted["spec"].get("replicas", 1)
    if not surplus or wanted["metadata"].get("deletionTimestamp"):
        return [*conditions.without(known, FAILURE)]
    if refusal is None or conditions.find(known, FAILURE):
        return [*known]
    reason = "FailedCreate" if surplus < 0 else "FailedDelete"
    why = refusal.why if surplus < 0 else f"unable to delete pods: {refusal.why}"
    told = {"type": FAILURE, "status": "True", "lastTransitionTime": timestamp(now), "reason": reason, "message": why}
    return [*known, told]
