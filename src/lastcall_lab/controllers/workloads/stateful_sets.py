"""StatefulSets: pods with identities, created in order (``k8s.io/kubernetes/pkg/controller/statefulset``)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lastcall.model.int_or_percent import resolve_portion
from lastcall_lab.controllers.framework.actions import (
    Action,
    CreateObject,
    Decision,
    DeleteObject,
    PatchObject,
    RecordEvent,
    status_patches,
)
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import pods
from lastcall_lab.controllers.objects.ownership import OwnerKind, affected_workloads, claim_objects
from lastcall_lab.controllers.workloads import revision_history, stateful_claims
from lastcall_lab.controllers.workloads.stateful_identities import (
    missing_labels,
    new_identity_pod,
    pod_name,
    pod_ordinal,
    revision_of,
    set_ordinals,
    split_name,
)

RESOURCE = "statefulsets.apps"
KIND = OwnerKind("apps/v1", "StatefulSet", RESOURCE)
HASH = "controller.kubernetes.io/hash"


class StatefulSetController:
    """Reconciles a StatefulSet when it, its pods, its claims or its revisions change."""

    name = "statefulset"
    resources: Sequence[str] = (RESOURCE, "pods", stateful_claims.RESOURCE, revision_history.RESOURCE)

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The affected sets, including those that wait for a pod name to become free."""
        if resource == RESOURCE:
            return [ref_of(RESOURCE, obj)]
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        if resource == stateful_claims.RESOURCE:
            sets = view.all(RESOURCE, namespace)
            return [
                ref_of(RESOURCE, one) for one in sets if split_name(name)[0].endswith(f"-{one['metadata']['name']}")
            ]
        waiting = ObjectRef(RESOURCE, namespace, split_name(name)[0])
        return [*affected_workloads(obj, KIND, view), *([waiting] if resource == "pods" and view.get(*waiting) else ())]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The next steps, and the status."""
        wanted = view.get(*key)
        if wanted is None:
            return Decision()
        history = revision_history.revision_history(wanted, KIND, view, label=HASH)
        is_going = bool(wanted["metadata"].get("deletionTimestamp"))
        if history.update is None:  # that of a set that is being deleted is collected, and not made again at once
            return Decision(() if is_going else tuple(history.actions))
        own, patches = claim_objects(wanted, KIND, "pods", view, only=lambda pod: _is_member(wanted, pod))
        if patches:
            return Decision(tuple(patches))
        current = history.find_revision((wanted.get("status") or {}).get("currentRevision", "")) or history.update
        turn = _StatefulSetSync(wanted, current, history.update, own, view, now)
        if not is_going:
            turn.run_steps()
        status = _stateful_set_status(turn)
        live = {one["metadata"]["name"] for one in (current, history.update)} | {revision_of(pod) for pod in own}
        limit = wanted["spec"].get("revisionHistoryLimit", 10)
        forgotten = revision_history.expired_revisions(history, live, limit)
        return Decision(
            (*status_patches(key, wanted, status), *turn.actions, *forgotten), _seconds_until_available(turn)
        )


def _is_member(wanted: Object, pod: Object) -> bool:
    return bool(split_name(pod["metadata"]["name"])[0] == wanted["metadata"]["name"])


@dataclass
class _StatefulSetSync:
    """One sync of a set. ``current`` and ``update`` are the current and the wanted revision."""

    wanted: Object
    current: Object
    update: Object
    pods: Sequence[Object]
    view: View
    now: float
    actions: list[Action] = field(default_factory=list)
    updated: int = 0
    """Pods deleted so that they are recreated from the new template."""

    def run_steps(self) -> None:
        """Creates wanted ordinals from the lowest, deletes others from the highest, then updates.

        With OrderedReady, each step waits for all steps before it (``updateStatefulSet``).
        """
        present = {pod_ordinal(pod): pod for pod in self.pods}
        slots = [present.get(ordinal) for ordinal in set_ordinals(self.wanted)]
        for ordinal, pod in zip(set_ordinals(self.wanted), slots, strict=True):
            if self._process_replica(ordinal, pod) and self.is_ordered:
                return
        condemned = [
            present[ordinal] for ordinal in sorted(present, reverse=True) if ordinal not in set_ordinals(self.wanted)
        ]
        for pod in condemned:
            self.actions += stateful_claims.correct_claim_owners(self.wanted, KIND, pod, self.view)
        if self._process_condemned(condemned, slots) and self.is_ordered:
            return
        self.actions += self._update_pods(slots)

    @property
    def is_ordered(self) -> bool:
        """Whether the policy is OrderedReady."""
        return bool(self.wanted["spec"].get("podManagementPolicy") != "Parallel")

    def is_available(self, pod: Object) -> bool:
        """Whether the pod has been ready for ``minReadySeconds``."""
        return pods.seconds_until_available(pod, self._min_ready_seconds, self.now) == 0

    @property
    def _min_ready_seconds(self) -> int:
        return int(self.wanted["spec"].get("minReadySeconds", 0))

    def _process_replica(self, ordinal: int, pod: Object | None) -> bool:
        """Reconciles one ordinal; returns whether the following ones must wait (``processReplica``)."""
        if pod is None:
            self.actions += self._create_pod(ordinal)
            return True
        if pods.pod_phase(pod) in pods.FINISHED:
            if not pod["metadata"].get("deletionTimestamp"):
                self.actions += self._delete_pod(pod)
            return True
        if pods.pod_phase(pod) == "Pending":
            self.actions += stateful_claims.create_missing_claims(self.wanted, KIND, ordinal, self.view)
        waits = (
            pod["metadata"].get("deletionTimestamp") or pods.pod_phase(pod) != "Running" or not self.is_available(pod)
        )
        if waits and self.is_ordered:
            return True
        if lost := missing_labels(pod):
            self.actions.append(
                PatchObject(ref_of("pods", pod), {"metadata": {"labels": lost}}, uid=pod["metadata"]["uid"])
            )
        self.actions += stateful_claims.correct_claim_owners(self.wanted, KIND, pod, self.view)
        return False

    def _create_pod(self, ordinal: int) -> Iterator[Action]:
        """Creates the pod once no pod of that name exists: two pods never share an identity."""
        name, namespace = pod_name(self.wanted, ordinal), self.wanted["metadata"]["namespace"]
        if self.view.get("pods", namespace, name) or stateful_claims.has_unusable_claim(
            self.wanted, ordinal, self.view
        ):
            return
        yield from stateful_claims.create_missing_claims(self.wanted, KIND, ordinal, self.view)
        pod = new_identity_pod(self.wanted, KIND, ordinal, self._revision_for(ordinal))
        yield CreateObject(
            "pods", namespace, pod, self._success_event("Create", name), self._failure_event("Create", name)
        )

    def _revision_for(self, ordinal: int) -> Object:
        """Ordinals below the partition keep the current revision (``newVersionedStatefulSetPod``)."""
        rolling = self.wanted["spec"]["updateStrategy"].get("rollingUpdate") or {}
        below = ordinal < set_ordinals(self.wanted).start + rolling.get("partition", 0)
        return self.current if below else self.update

    def _process_condemned(self, condemned: Sequence[Object], slots: Sequence[Object | None]) -> bool:
        """Deletes ordinals beyond the wanted size; returns whether updates must wait (``processCondemned``)."""
        unhealthy = [pod for pod in (*slots, *reversed(condemned)) if pod is None or not self._is_healthy(pod)]
        first = unhealthy[0] if unhealthy else None
        for pod in condemned:
            if pod["metadata"].get("deletionTimestamp"):
                if self.is_ordered:
                    return True
                continue
            if self.is_ordered and not self.is_available(pod) and pod is not first:
                return True
            self.actions += self._delete_pod(pod)
            if self.is_ordered:
                return True
        return False

    def _is_healthy(self, pod: Object) -> bool:
        return self.is_available(pod) and not pod["metadata"].get("deletionTimestamp")

    def _update_pods(self, slots: Sequence[Object | None]) -> Iterator[Action]:
        """Deletes outdated pods from the highest ordinal, as many at once as may be unavailable."""
        strategy = self.wanted["spec"]["updateStrategy"]
        if strategy["type"] == "OnDelete":
            return
        rolling = strategy.get("rollingUpdate") or {}
        most = max(1, resolve_portion(rolling.get("maxUnavailable", 1), len(slots), up=False))
        allowed = most - sum(pod is None or not self._is_healthy(pod) for pod in slots)
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
                yield from self._delete_pod(pod)

    def _delete_pod(self, pod: Object) -> Iterator[Action]:
        name = pod["metadata"]["name"]
        yield DeleteObject(ref_of("pods", pod), uid=pod["metadata"]["uid"], refused=self._failure_event("Delete", name))
        yield self._success_event("Delete", name)

    def _success_event(self, verb: str, pod: str) -> RecordEvent:
        """``recordPodEvent``."""
        message = f"{verb.lower()} Pod {pod} in StatefulSet {self.wanted['metadata']['name']} successful"
        return KIND.owner_event(self.wanted, f"Successful{verb}", message)

    def _failure_event(self, verb: str, pod: str) -> RecordEvent:
        message = f"{verb.lower()} Pod {pod} in StatefulSet {self.wanted['metadata']['name']} failed error: {{error}}"
        return KIND.owner_event(self.wanted, f"Failed{verb}", message, "Warning")


def _stateful_set_status(turn: _StatefulSetSync) -> Object:
    """``computeReplicaStatus``. A rolling update is complete when all pods exist, are updated and ready.

    As in Kubernetes, deleted pods count as current even if they are of a revision between the two.
    """
    current, update = turn.current["metadata"]["name"], turn.update["metadata"]["name"]
    counted = [pod for pod in turn.pods if not pod["metadata"].get("deletionTimestamp")]
    ready = [pod for pod in turn.pods if pods.pod_phase(pod) == "Running" and pods.is_ready(pod)]
    wanted, spec = turn.wanted, turn.wanted["spec"]
    status: Object = {
        "observedGeneration": wanted["metadata"].get("generation", 0),
        "replicas": len(turn.pods),
        "readyReplicas": len(ready),
        "availableReplicas": sum(map(turn.is_available, ready)),
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


def _seconds_until_available(turn: _StatefulSetSync) -> float | None:
    """Seconds until the next pod has been ready for long enough."""
    seconds = turn.wanted["spec"].get("minReadySeconds", 0)
    waits = [pods.seconds_until_available(pod, seconds, turn.now) for pod in turn.pods]
    return min((wait for wait in waits if wait), default=None)
