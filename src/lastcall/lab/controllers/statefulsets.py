"""StatefulSets: pods with identities, one after the other (``k8s.io/kubernetes/pkg/controller/statefulset``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lastcall.lab.controllers import pods, revisions, set_claims
from lastcall.lab.controllers.actions import Action, Create, Decision, Delete, Patch, Tell, status_patch
from lastcall.lab.controllers.identities import (
    missing_labels,
    new_pod,
    number,
    numbers,
    pod_name,
    revision_of,
    split,
)
from lastcall.lab.controllers.owning import Kind, claim, interested
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.model.portions import portion

RESOURCE = "statefulsets.apps"
KIND = Kind("apps/v1", "StatefulSet", RESOURCE)
HASH = "controller.kubernetes.io/hash"


class StatefulSets:
    """Looks at a StatefulSet when it, its pods, its claims or its revisions have changed."""

    name = "statefulset"
    resources: Sequence[str] = (RESOURCE, "pods", set_claims.RESOURCE, revisions.RESOURCE)

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The sets that are concerned, also those that wait for a name."""
        if resource == RESOURCE:
            return [ref(RESOURCE, obj)]
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if resource == set_claims.RESOURCE:
            sets = view.all(RESOURCE, namespace)
            return [ref(RESOURCE, one) for one in sets if split(name)[0].endswith(f"-{one['metadata']['name']}")]
        waiting = Ref(RESOURCE, namespace, split(name)[0])
        return [*interested(obj, KIND, view), *([waiting] if resource == "pods" and view.get(*waiting) else ())]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """The next steps, and the status."""
        wanted = view.get(*key)
        if wanted is None:
            return Decision()
        history = revisions.history(wanted, KIND, view, label=HASH)
        if history.update is None:
            return Decision(tuple(history.actions))
        own, patches = claim(wanted, KIND, "pods", view, only=lambda pod: _member(wanted, pod))
        if patches:
            return Decision(tuple(patches))
        current = history.named((wanted.get("status") or {}).get("currentRevision", "")) or history.update
        turn = _Turn(wanted, current, history.update, own, view, now)
        if not wanted["metadata"].get("deletionTimestamp"):
            turn.take()
        status = _status(turn)
        live = {one["metadata"]["name"] for one in (current, history.update)} | {revision_of(pod) for pod in own}
        limit = wanted["spec"].get("revisionHistoryLimit", 10)
        forgotten = revisions.forgotten(history, live, limit)
        return Decision((*status_patch(key, wanted, status), *turn.actions, *forgotten), _again(turn))


def _member(wanted: Object, pod: Object) -> bool:
    return bool(split(pod["metadata"]["name"])[0] == wanted["metadata"]["name"])


@dataclass
class _Turn:
    """What is done about one set now. ``current`` and ``update`` are revisions: what is, and what is to be."""

    wanted: Object
    current: Object
    update: Object
    pods: Sequence[Object]
    view: View
    now: float
    actions: list[Action] = field(default_factory=list)
    updated: int = 0
    """Pods that are deleted so that they come back with the new template."""

    def take(self) -> None:
        """The numbers that should be there, from the lowest; those that should not, from the highest; then updates.

        With the policy OrderedReady each step waits until all before it are done (``updateStatefulSet``).
        """
        present = {number(pod): pod for pod in self.pods}
        slots = [present.get(ordinal) for ordinal in numbers(self.wanted)]
        for ordinal, pod in zip(numbers(self.wanted), slots, strict=True):
            if self._place(ordinal, pod) and self.ordered:
                return
        condemned = [
            present[ordinal] for ordinal in sorted(present, reverse=True) if ordinal not in numbers(self.wanted)
        ]
        for pod in condemned:
            self.actions += set_claims.owned_rightly(self.wanted, KIND, pod, self.view)
        if self._shrink(condemned, slots) and self.ordered:
            return
        self.actions += self._updates(slots)

    @property
    def ordered(self) -> bool:
        """Whether one comes after the other."""
        return bool(self.wanted["spec"].get("podManagementPolicy") != "Parallel")

    def available(self, pod: Object) -> bool:
        """Whether it has been ready for long enough."""
        return pods.available_in(pod, self._ready_seconds, self.now) == 0

    @property
    def _ready_seconds(self) -> int:
        return int(self.wanted["spec"].get("minReadySeconds", 0))

    def _place(self, ordinal: int, pod: Object | None) -> bool:
        """Brings about what one number needs; whether those after it have to wait (``processReplica``)."""
        if pod is None:
            self.actions += self._made(ordinal)
            return True
        if pods.phase(pod) in pods.FINISHED:
            if not pod["metadata"].get("deletionTimestamp"):
                self.actions += self._ended(pod)
            return True
        if pods.phase(pod) == "Pending":
            self.actions += set_claims.missing(self.wanted, KIND, ordinal, self.view)
        waits = pod["metadata"].get("deletionTimestamp") or pods.phase(pod) != "Running" or not self.available(pod)
        if waits and self.ordered:
            return True
        if lost := missing_labels(pod):
            self.actions.append(Patch(ref("pods", pod), {"metadata": {"labels": lost}}, uid=pod["metadata"]["uid"]))
        self.actions += set_claims.owned_rightly(self.wanted, KIND, pod, self.view)
        return False

    def _made(self, ordinal: int) -> Iterator[Action]:
        """A pod, if no pod of that name is there any more: two of one identity never exist at once."""
        name, namespace = pod_name(self.wanted, ordinal), self.wanted["metadata"]["namespace"]
        if self.view.get("pods", namespace, name) or set_claims.unusable(self.wanted, ordinal, self.view):
            return
        yield from set_claims.missing(self.wanted, KIND, ordinal, self.view)
        pod = new_pod(self.wanted, KIND, ordinal, self._revision(ordinal))
        yield Create("pods", namespace, pod, self._told("Create", name), self._refused("Create", name))

    def _revision(self, ordinal: int) -> Object:
        """Numbers below the partition come back as they were (``newVersionedStatefulSetPod``)."""
        rolling = self.wanted["spec"]["updateStrategy"].get("rollingUpdate") or {}
        below = ordinal < numbers(self.wanted).start + rolling.get("partition", 0)
        return self.current if below else self.update

    def _shrink(self, condemned: Sequence[Object], slots: Sequence[Object | None]) -> bool:
        """Deletes what is beyond the wanted size; whether updates have to wait (``processCondemned``)."""
        unhealthy = [pod for pod in (*slots, *reversed(condemned)) if pod is None or not self._serves(pod)]
        first = unhealthy[0] if unhealthy else None
        for pod in condemned:
            if pod["metadata"].get("deletionTimestamp"):
                if self.ordered:
                    return True
                continue
            if self.ordered and not self.available(pod) and pod is not first:
                return True
            self.actions += self._ended(pod)
            if self.ordered:
                return True
        return False

    def _serves(self, pod: Object) -> bool:
        return self.available(pod) and not pod["metadata"].get("deletionTimestamp")

    def _updates(self, slots: Sequence[Object | None]) -> Iterator[Action]:
        """The pods of an old revision go, from the highest number, as many at once as may be missing."""
        strategy = self.wanted["spec"]["updateStrategy"]
        if strategy["type"] == "OnDelete":
            return
        rolling = strategy.get("rollingUpdate") or {}
        most = max(1, portion(rolling.get("maxUnavailable", 1), len(slots), up=False))
        allowed = most - sum(pod is None or not self._serves(pod) for pod in slots)
        for pod in reversed(slots[rolling.get("partition", 0) :]):
            if allowed <= 0:
                return
            if (
                pod
                and revision_of(pod) != self.update["metadata"]["name"]
                and not pod["metadata"].get("deletionTimestamp")
            ):
                allowed -= 1
                self.updated += 1
                yield from self._ended(pod)

    def _ended(self, pod: Object) -> Iterator[Action]:
        name = pod["metadata"]["name"]
        yield Delete(ref("pods", pod), uid=pod["metadata"]["uid"], refused=self._refused("Delete", name))
        yield self._told("Delete", name)

    def _told(self, verb: str, pod: str) -> Tell:
        """``recordPodEvent``."""
        message = f"{verb.lower()} Pod {pod} in StatefulSet {self.wanted['metadata']['name']} successful"
        return KIND.tell(self.wanted, f"Successful{verb}", message)

    def _refused(self, verb: str, pod: str) -> Tell:
        message = f"{verb.lower()} Pod {pod} in StatefulSet {self.wanted['metadata']['name']} failed error: {{error}}"
        return KIND.tell(self.wanted, f"Failed{verb}", message, "Warning")


def _status(turn: _Turn) -> Object:
    """``computeReplicaStatus``; a rolling update is complete when all pods are there, new and ready.

    What is deleted counts as current, as in Kubernetes, also if it is of a revision between the two.
    """
    current, update = turn.current["metadata"]["name"], turn.update["metadata"]["name"]
    counted = [pod for pod in turn.pods if not pod["metadata"].get("deletionTimestamp")]
    ready = [pod for pod in turn.pods if pods.phase(pod) == "Running" and pods.ready(pod)]
    wanted, spec = turn.wanted, turn.wanted["spec"]
    status: Object = {
        "observedGeneration": wanted["metadata"].get("generation", 0),
        "replicas": len(turn.pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(map(turn.available, ready)),
        "currentReplicas": max(0, sum(revision_of(pod) == current for pod in counted) - turn.updated),
        "updatedReplicas": sum(revision_of(pod) == update for pod in counted),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": (wanted.get("status") or {}).get("collisionCount", 0),
    }
    counts = {status[name] for name in ("replicas", "readyReplicas", "updatedReplicas")}
    if spec["updateStrategy"]["type"] == "RollingUpdate" and counts == {spec["replicas"]}:
        status |= {"currentReplicas": status["updatedReplicas"], "currentRevision": update}
    kept = ("replicas", "availableReplicas", "collisionCount")
    return {name: value for name, value in status.items() if value or name in kept}


def _again(turn: _Turn) -> float | None:
    """When the next pod will have been ready for long enough."""
    seconds = turn.wanted["spec"].get("minReadySeconds", 0)
    waits = [pods.available_in(pod, seconds, turn.now) for pod in turn.pods]
    return min((wait for wait in waits if wait), default=None)
