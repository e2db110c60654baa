"""The status of a Deployment, and how its rollout goes (``deployment/progress.go``, ``deployment/sync.go``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall.lab.controllers import conditions, pods
from lastcall.lab.controllers.actions import Patch
from lastcall.lab.controllers.deployment_sets import REVISION, annotations, bounds_of
from lastcall.lab.controllers.view import Object, Ref

_STAMP = "lastUpdateTime"
_PROGRESSING, _AVAILABLE, _FAILURE = "Progressing", "Available", "ReplicaFailure"
_KEPT = ("terminatingReplicas",)


def complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    """Whether all pods are of the newest template and available, and no others are left."""
    wanted = deployment["spec"]["replicas"]
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return seen and all(status.get(name, 0) == wanted for name in counts)


class Status:
    """What the status should be at ``now``; steps that are taken add what they know."""

    def __init__(self, deployment: Object, new: Object | None, sets: Sequence[Object], now: float) -> None:
        self._deployment = deployment
        self._new = new
        self._sets = sets
        self._now = now
        self._old: Mapping[str, Any] = deployment.get("status") or {}
        self._conditions = self._paused(self._old.get("conditions") or ())
        self._revision = annotations(new).get(REVISION, "") if new else ""
        self._collisions = self._old.get("collisionCount")
        if new and self._deadline is not None and not conditions.find(self._conditions, _PROGRESSING):
            self._progress("True", "FoundNewReplicaSet", f'Found new replica set "{new["metadata"]["name"]}"')

    def created(self, name: str, revision: int) -> None:
        """A new set has been made."""
        self._revision = str(revision)
        if self._deadline is not None:
            self._progress("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')

    def refused(self, message: str) -> tuple[Patch, ...]:
        """A new set could not be made: nothing else is said of the rollout until it can."""
        before = self._conditions
        if self._deadline is not None:
            self._progress("False", "ReplicaSetCreateError", message)
        if self._conditions is before:
            return ()
        return (self._patch({"status": {"conditions": list(self._conditions)}}),)

    def collided(self) -> None:
        """Another template has the name of the set that was to be made."""
        self._collisions = (self._collisions or 0) + 1

    def patch(self, *, progress: bool = True) -> tuple[Patch, ...]:
        """Brings it about; ``progress``: whether a rollout goes on, whose progress is judged."""
        status = self._counted()
        if progress:
            self._judge(status)
        self._failures()
        if self._conditions:
            status["conditions"] = list(self._conditions)
        body: Object = {}
        if status != self._old:
            body["status"] = {**{name: None for name in self._old if name not in status}, **status}
        if self._revision and annotations(self._deployment).get(REVISION) != self._revision:
            body["metadata"] = {"annotations": {REVISION: self._revision}}
        return (self._patch(body),) if body else ()

    def _patch(self, body: Object) -> Patch:
        metadata = self._deployment["metadata"]
        key = Ref("deployments.apps", metadata["namespace"], metadata["name"])
        return Patch(key, body, "status", uid=metadata["uid"])

    def again_in(self) -> float | None:
        """When the rollout will have made no progress for too long (``requeueStuckDeployment``)."""
        found = conditions.find(self._conditions, _PROGRESSING)
        if self._deadline is None or not found or found["reason"] == "ProgressDeadlineExceeded":
            return None
        if complete(self._deployment, self._counted()):
            return None
        return max(0.0, pods.seconds(found[_STAMP]) + self._deadline - self._now) + 1.0

    # -- numbers -------------------------------------------------------------------------------------------------------

    def _counted(self) -> Object:
        metadata, wanted = self._deployment["metadata"], sum(one["spec"]["replicas"] for one in self._sets)
        available = self._sum("availableReplicas")
        status: Object = {
            "observedGeneration": metadata.get("generation", 0),
            "replicas": self._sum("replicas"),
            "updatedReplicas": (self._new.get("status") or {}).get("replicas", 0) if self._new else 0,
            "readyReplicas": self._sum("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
            "terminatingReplicas": self._sum("terminatingReplicas"),
        }
        if self._collisions is not None:
            status["collisionCount"] = self._collisions
        if available >= bounds_of(self._deployment).least:
            self._set(_AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
        else:
            message = "Deployment does not have minimum availability."
            self._set(_AVAILABLE, "False", "MinimumReplicasUnavailable", message)
        return {name: value for name, value in status.items() if value or name in _KEPT}

    def _sum(self, name: str) -> int:
        return sum((one.get("status") or {}).get(name) or 0 for one in self._sets)

    # -- conditions ----------------------------------------------------------------------------------------------------

    @property
    def _deadline(self) -> int | None:
        """Seconds without progress after which a rollout has failed; None for ever."""
        said: int | None = self._deployment["spec"].get("progressDeadlineSeconds")
        return None if said == 2**31 - 1 else said

    def _set(self, kind: str, status: str, reason: str, message: str) -> None:
        made = conditions.condition(kind, status, reason, message, now=self._now, stamp=_STAMP)
        self._conditions = conditions.set_to(self._conditions, made)

    def _progress(self, status: str, reason: str, message: str) -> None:
        self._set(_PROGRESSING, status, reason, message)

    def _paused(self, found: conditions.Conditions) -> conditions.Conditions:
        """Time does not run against a rollout that is paused, nor has it when it is resumed."""
        self._conditions = found
        reason = conditions.find(found, _PROGRESSING).get("reason")
        if self._deadline is None or reason == "ProgressDeadlineExceeded":
            return found
        if self._deployment["spec"].get("paused"):
            if reason != "DeploymentPaused":
                self._progress("Unknown", "DeploymentPaused", "Deployment is paused")
        elif reason == "DeploymentPaused":
            self._progress("Unknown", "DeploymentResumed", "Deployment is resumed")
        return self._conditions

    def _judge(self, status: Mapping[str, Any]) -> None:
        """Whether the rollout is done, goes on, or has stood still for too long (``syncRolloutStatus``)."""
        if self._deadline is None:
            self._conditions = conditions.without(self._conditions, _PROGRESSING)
            return
        found = conditions.find(self._old.get("conditions") or (), _PROGRESSING)
        at_rest = status.get("replicas", 0) == status.get("updatedReplicas", 0)
        if at_rest and found.get("reason") == "NewReplicaSetAvailable":
            return
        if complete(self._deployment, status):
            self._progress("True", "NewReplicaSetAvailable", f"{self._what()} has successfully progressed.")
        elif self._moved(status):
            now_known = conditions.find(self._conditions, _PROGRESSING)
            self._conditions = conditions.without(self._conditions, _PROGRESSING)
            self._progress("True", "ReplicaSetUpdated", f"{self._what()} is progressing.")
            if now_known.get("status") == "True":
                since = {"lastTransitionTime": now_known["lastTransitionTime"]}
                *others, last = self._conditions
                self._conditions = [*others, {**last, **since}]
        elif self._late():
            self._progress("False", "ProgressDeadlineExceeded", f"{self._what()} has timed out progressing.")

    def _what(self) -> str:
        if self._new:
            return f'ReplicaSet "{self._new["metadata"]["name"]}"'
        return f'Deployment "{self._deployment["metadata"]["name"]}"'

    def _moved(self, status: Mapping[str, Any]) -> bool:
        """Whether there are more new pods, fewer old ones, or more that are ready or available."""

        def old_pods(one: Mapping[str, Any]) -> int:
            return int(one.get("replicas", 0)) - int(one.get("updatedReplicas", 0))

        more = ("updatedReplicas", "readyReplicas", "availableReplicas")
        return old_pods(status) < old_pods(self._old) or any(
            status.get(name, 0) > self._old.get(name, 0) for name in more
        )

    def _late(self) -> bool:
        found = conditions.find(self._conditions, _PROGRESSING)
        if not found or self._deadline is None or found["reason"] == "NewReplicaSetAvailable":
            return False
        return found["reason"] == "ProgressDeadlineExceeded" or (
            pods.seconds(found[_STAMP]) + self._deadline < self._now
        )

    def _failures(self) -> None:
        """What keeps a set from making its pods is told here too, the newest set's first."""
        for one in [*([self._new] if self._new else []), *self._sets]:
            found = conditions.find((one.get("status") or {}).get("conditions") or (), _FAILURE)
            if found:
                self._conditions = conditions.set_to(
                    self._conditions, {**found, _STAMP: found.get("lastTransitionTime")}
                )
                return
        self._conditions = conditions.without(self._conditions, _FAILURE)
