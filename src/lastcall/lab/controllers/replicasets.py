"""ReplicaSets: as many pods as asked for (``k8s.io/kubernetes/pkg/controller/replicaset``)."""

from collections.abc import Iterable, Iterator, Sequence

from lastcall.lab.controllers import pods
from lastcall.lab.controllers.actions import Action, Create, Decision, Delete, Tell, status_patch
from lastcall.lab.controllers.view import Object, Ref, View, controller_of, ref

RESOURCE = "replicasets.apps"
BURST = 500
"""Pods that are made or deleted at once, at most."""


class ReplicaSets:
    """Looks at a ReplicaSet when it or one of its pods has changed."""

    name = "replicaset"
    resources: Sequence[str] = (RESOURCE, "pods")

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The set itself, or the owner of a pod."""
        if resource == RESOURCE:
            return [ref(RESOURCE, obj)]
        owner = controller_of(obj)
        if owner and owner["kind"] == "ReplicaSet":
            return [Ref(RESOURCE, obj["metadata"]["namespace"], owner["name"])]
        return []

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """Pods to be made or deleted, and the status."""
        wanted = view.get(*key)
        if wanted is None:
            return Decision()
        owned = view.owned(wanted["metadata"]["uid"], "pods")
        alive = [pod for pod in owned if pods.active(pod)]
        actions: list[Action] = []
        if not wanted["metadata"].get("deletionTimestamp"):
            actions += _scale(key, wanted, alive, now)
        status, again = _status(wanted, alive, now)
        actions += status_patch(key, wanted, status)
        return Decision(tuple(actions), again)


def _scale(key: Ref, wanted: Object, alive: Sequence[Object], now: float) -> Iterator[Action]:
    missing = wanted["spec"].get("replicas", 1) - len(alive)
    for _ in range(min(missing, BURST)):
        pod = pods.from_template(wanted["spec"]["template"], wanted, "apps/v1", "ReplicaSet")
        yield Create("pods", key.namespace, pod, _told(key, wanted, "SuccessfulCreate", "Created pod: {name}"))
    for pod in pods.to_delete(alive, min(-missing, BURST), now) if missing < 0 else ():
        yield Delete(ref("pods", pod), uid=pod["metadata"]["uid"])
        yield _told(key, wanted, "SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def _told(key: Ref, wanted: Object, reason: str, message: str) -> Tell:
    return Tell(key, wanted["metadata"]["uid"], "ReplicaSet", "apps/v1", reason, message)


def _status(wanted: Object, alive: Sequence[Object], now: float) -> tuple[Object, float | None]:
    """And the seconds until a pod that is ready counts as available."""
    spec = wanted["spec"]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    waits = [pods.available_in(pod, spec.get("minReadySeconds", 0), now) for pod in alive]
    status: Object = {
        "replicas": len(alive),
        "fullyLabeledReplicas": sum(labels.items() <= (pod["metadata"].get("labels") or {}).items() for pod in alive),
        "readyReplicas": sum(wait is not None for wait in waits),
        "availableReplicas": sum(wait == 0 for wait in waits),
        "observedGeneration": wanted["metadata"].get("generation", 0),
    }
    if conditions := (wanted.get("status") or {}).get("conditions"):
        status["conditions"] = conditions
    later = [wait for wait in waits if wait]
    return {name: value for name, value in status.items() if value or name == "replicas"}, min(later, default=None)
