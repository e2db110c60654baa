"""The status of a Deployment and the progress of its rollout (``deployment/progress.go``, ``deployment/sync.go``)."""

from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.controllers.framework.actions import PatchObject
from lastcall_lab.controllers.framework.view import Object, ObjectRef
from lastcall_lab.controllers.objects import conditions, pods
from lastcall_lab.controllers.workloads.deployment_sets import REVISION, annotations_of, rollout_bounds_of

_STAMP = "lastUpdateTime"
_PROGRESSING, _AVAILABLE, _FAILURE = "Progressing", "Available", "ReplicaFailure"
_KEPT = ("terminatingReplicas",)


def is_rollout_complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    """Whether all pods are updated and available, and no old ones remain."""
    wanted = deployment["spec"]["replicas"]
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    return seen and all(status.get(name, 0) == wanted for name in counts)


class DeploymentStatusBuilder:
    """Builds the status at ``now``; the steps of the rollout add their results."""

    def __init__(self, deployment: Object, new: Object | None, sets: Sequence[Object], now: float) -> None:
        self._deployment = deployment
        self._new = new
        self._sets = sets
        self._now = now
        self._old: Mapping[str, Any] = deployment.get("status") or {}
        self._conditions = self._with_pause_condition(self._old.get("conditions") or ())
        self._revision = annotations_of(new).get(REVISION, "") if new else ""
        self._collisions = self._old.get("collisionCount")
        if (
            new
            and self._progress_deadline is not None
            and not conditions.find_condition(self._conditions, _PROGRESSING)
        ):
            self._set_progressing("True", "FoundNewReplicaSet", f'Found new replica set "{new["metadata"]["name"]}"')

    def set_created(self, name: str, revision: int) -> None:
        """Records that a new set was created."""
        self._revision = str(revision)
        if self._progress_deadline is not None:
            self._set_progressing("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')

    def refuse_creation(self, message: str) -> tuple[PatchObject, ...]:
        """Records that a new set could not be created; hides the progress of the rollout until it can."""
        before = self._conditions
        if self._progress_deadline is not None:
            self._set_progressing("False", "ReplicaSetCreateError", message)
        if self._conditions is before:
            return ()
        return (self._new_patch({"status": {"conditions": list(self._conditions)}}),)

    def count_collision(self) -> None:
        """Records that a set with the same name but another template exists."""
        self._collisions = (self._collisions or 0) + 1

    def status_patches(self, *, progress: bool = True) -> tuple[PatchObject, ...]:
        """Patches the status; ``progress``: whether to judge the progress of a rollout."""
        status = self._with_counts()
        if progress:
            self._judge_rollout(status)
        self._copy_failures()
        if self._conditions:
            status["conditions"] = list(self._conditions)
        body: Object = {}
        if status != self._old:
            body["status"] = {**{name: None for name in self._old if name not in status}, **status}
        if self._revision and annotations_of(self._deployment).get(REVISION) != self._revision:
            body["metadata"] = {"annotations": {REVISION: self._revision}}
        return (self._new_patch(body),) if body else ()

    def _new_patch(self, body: Object) -> PatchObject:
        metadata = self._deployment["metadata"]
        key = ObjectRef("deployments.apps", metadata["namespace"], metadata["name"])
        return PatchObject(key, body, "status", uid=metadata["uid"])

    def again_in(self) -> float | None:
        """Seconds until the progress deadline (``requeueStuckDeployment``)."""
        found = conditions.find_condition(self._conditions, _PROGRESSING)
        if self._progress_deadline is None or not found or found["reason"] == "ProgressDeadlineExceeded":
            return None
        if is_rollout_complete(self._deployment, self._with_counts()):
            return None
        return max(0.0, pods.unix_seconds(found[_STAMP]) + self._progress_deadline - self._now) + 1.0

    # -- counts --------------------------------------------------------------------------------------------------------

    def _with_counts(self) -> Object:
        metadata, wanted = self._deployment["metadata"], sum(one["spec"]["replicas"] for one in self._sets)
        available = self._sum_of_sets("availableReplicas")
        status: Object = {
            "observedGeneration": metadata.get("generation", 0),
            "replicas": self._sum_of_sets("replicas"),
            "updatedReplicas": (self._new.get("status") or {}).get("replicas", 0) if self._new else 0,
            "readyReplicas": self._sum_of_sets("readyReplicas"),
            "availableReplicas": available,
            "unavailableReplicas": max(0, wanted - available),
            "terminatingReplicas": self._sum_of_sets("terminatingReplicas"),
        }
        if self._collisions is not None:
            status["collisionCount"] = self._collisions
        if available >= rollout_bounds_of(self._deployment).min_available:
            self._set_status_condition(
                _AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability."
            )
        else:
            message = "Deployment does not have minimum availability."
            self._set_status_condition(_AVAILABLE, "False", "MinimumReplicasUnavailable", message)
        return {name: value for name, value in status.items() if value or name in _KEPT}

    def _sum_of_sets(self, name: str) -> int:
        return sum((one.get("status") or {}).get(name) or 0 for one in self._sets)

    # -- conditions ----------------------------------------------------------------------------------------------------

    @property
    def _progress_deadline(self) -> int | None:
        """Seconds without progress after which a rollout has failed; None for no limit."""
        said: int | None = self._deployment["spec"].get("progressDeadlineSeconds")
        return None if said == 2**31 - 1 else said

    def _set_status_condition(self, kind: str, status: str, reason: str, message: str) -> None:
        made = conditions.new_condition(kind, status, reason, message, now=self._now, stamp=_STAMP)
        self._conditions = conditions.set_condition(self._conditions, made)

    def _set_progressing(self, status: str, reason: str, message: str) -> None:
        self._set_status_condition(_PROGRESSING, status, reason, message)

    def _with_pause_condition(self, found: conditions.Conditions) -> conditions.Conditions:
        """The progress deadline does not run while paused, and restarts at resume."""
        self._conditions = found
        reason = conditions.find_condition(found, _PROGRESSING).get("reason")
        if self._progress_deadline is None or reason == "ProgressDeadlineExceeded":
            return found
        if self._deployment["spec"].get("paused"):
            if reason != "DeploymentPaused":
                self._set_progressing("Unknown", "DeploymentPaused", "Deployment is paused")
        elif reason == "DeploymentPaused":
            self._set_progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
        return self._conditions

    def _judge_rollout(self, status: Mapping[str, Any]) -> None:
        """Whether the rollout is complete, progressing, or stuck (``syncRolloutStatus``)."""
        if self._progress_deadline is None:
            self._conditions = conditions.without_condition(self._conditions, _PROGRESSING)
            return
        found = conditions.find_condition(self._old.get("conditions") or (), _PROGRESSING)
        at_rest = status.get("replicas", 0) == status.get("updatedReplicas", 0)
        if at_rest and found.get("reason") == "NewReplicaSetAvailable":
            return
        if is_rollout_complete(self._deployment, status):
            self._set_progressing(
                "True", "NewReplicaSetAvailable", f"{self._rollout_subject()} has successfully progressed."
            )
        elif self._has_progressed(status):
            now_known = conditions.find_condition(self._conditions, _PROGRESSING)
            self._conditions = conditions.without_condition(self._conditions, _PROGRESSING)
            self._set_progressing("True", "ReplicaSetUpdated", f"{self._rollout_subject()} is progressing.")
            if now_known.get("status") == "True":
                since = {"lastTransitionTime": now_known["lastTransitionTime"]}
                *others, last = self._conditions
                self._conditions = [*others, {**last, **since}]
        elif self._is_past_deadline():
            self._set_progressing(
                "False", "ProgressDeadlineExceeded", f"{self._rollout_subject()} has timed out progressing."
            )

    def _rollout_subject(self) -> str:
        if self._new:
            return f'ReplicaSet "{self._new["metadata"]["name"]}"'
        return f'Deployment "{self._deployment["metadata"]["name"]}"'

    def _has_progressed(self, status: Mapping[str, Any]) -> bool:
        """Whether new pods increased, old ones decreased, or more are ready or available."""

        def old_pods(one: Mapping[str, Any]) -> int:
            return int(one.get("replicas", 0)) - int(one.get("updatedReplicas", 0))

        more = ("updatedReplicas", "readyReplicas", "availableReplicas")
        return old_pods(status) < old_pods(self._old) or any(
            status.get(name, 0) > self._old.get(name, 0) for name in more
        )

    def _is_past_deadline(self) -> bool:
        found = conditions.find_condition(self._conditions, _PROGRESSING)
        if not found or self._progress_deadline is None or found["reason"] == "NewReplicaSetAvailable":
            return False
        return found["reason"] == "ProgressDeadlineExceeded" or (
            pods.unix_seconds(found[_STAMP]) + self._progress_deadline < self._now
        )

    def _copy_failures(self) -> None:
        """Copies the ReplicaFailure condition of the sets, the newest set's first."""
        for one in [*([self._new] if self._new else []), *self._sets]:
            found = conditions.find_condition((one.get("status") or {}).get("conditions") or (), _FAILURE)
            if found:
                self._conditions = conditions.set_condition(
                    self._conditions, {**found, _STAMP: found.get("lastTransitionTime")}
                )
                return
        self._conditions = conditions.without_condition(self._conditions, _FAILURE)
