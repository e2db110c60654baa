"""The ReplicaSets of a Deployment: names, revisions and creation (``deployment/util/deployment_util.go``)."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lastcall_lab.controllers.framework.view import Object
from lastcall_lab.controllers.objects.ownership import OwnerKind
from lastcall_lab.controllers.objects.template_hash import short_hash
from lastcall_lab.controllers.workloads.rollout_sizes import (
    ReplicaSetCounts,
    RolloutBounds,
    new_set_size,
    rollout_bounds,
)

HASH = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"

_OWN = (
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
)
"""Annotations that are not copied from a Deployment to its sets."""

_LONGEST_HISTORY = 2000
"""Maximum characters of old revision numbers in a set's annotation."""


def annotations_of(obj: Object) -> Mapping[str, str]:
    """The annotations in its metadata."""
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def annotation_number(obj: Object, annotation: str) -> int | None:
    """A numeric annotation; None if absent or no number."""
    said = annotations_of(obj).get(annotation, "")
    return int(said) if said.isdecimal() else None


def revision_number(replica_set: Object) -> int:
    """Its revision; 0 if it has none."""
    return annotation_number(replica_set, REVISION) or 0


def rollout_bounds_of(deployment: Object) -> RolloutBounds:
    """The bounds of its strategy. Recreate replaces all pods at once."""
    spec = deployment["spec"]
    strategy, replicas = spec["strategy"], spec["replicas"]
    if strategy["type"] != "RollingUpdate":
        return RolloutBounds(replicas, 0, 0)
    rolling = strategy.get("rollingUpdate") or {}
    return rollout_bounds(replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))


def replica_counts(sets: Sequence[Object]) -> list[ReplicaSetCounts]:
    """The sets as numbers."""
    return [
        ReplicaSetCounts(
            name=one["metadata"]["name"],
            replicas=one["spec"]["replicas"],
            available=(one.get("status") or {}).get("availableReplicas", 0),
            before=annotation_number(one, MOST),
            age=(one["metadata"]["creationTimestamp"], one["metadata"]["name"]),
        )
        for one in sets
    ]


def size_annotations(deployment: Object) -> dict[str, str]:
    """Annotations with the Deployment's size, which distinguish scaling from a rollout."""
    allowed = rollout_bounds_of(deployment)
    return {DESIRED: str(allowed.replicas), MOST: str(allowed.max_pods)}


def is_same_template(replica_set: Object, deployment: Object) -> bool:
    """Whether both templates are equal apart from the pod-template-hash label."""
    return bool(
        _template_without_hash(replica_set["spec"]["template"])
        == _template_without_hash(deployment["spec"]["template"])
    )


def _template_without_hash(template: Object) -> Any:
    metadata = {name: value for name, value in (template.get("metadata") or {}).items() if value}
    labels = {name: value for name, value in (metadata.pop("labels", None) or {}).items() if name != HASH}
    return labels, metadata, template["spec"]


def refresh_patch(new: Object, deployment: Object, latest: int) -> Object:
    """Updates the newest set: its revision and the annotations that it copies from the Deployment."""
    present = annotations_of(new)
    change = {
        name: value
        for name, value in annotations_of(deployment).items()
        if name not in _OWN and present.get(name) != value
    }
    before = revision_number(new)
    if before < latest:
        change[REVISION] = str(latest)
        if REVISION in present:
            change[HISTORY] = _revision_history(present.get(HISTORY, ""), str(before))
    patch: Object = {"metadata": {"annotations": change}} if change else {}
    ready_seconds = deployment["spec"].get("minReadySeconds", 0)
    if new["spec"].get("minReadySeconds", 0) != ready_seconds:
        patch["spec"] = {"minReadySeconds": ready_seconds}
    return patch


def _revision_history(known: str, number: str) -> str:
    """The earlier revisions of a set; the oldest are dropped first."""
    numbers = [*(known.split(",") if known else ()), number]
    while len(",".join(numbers)) > _LONGEST_HISTORY:
        numbers = numbers[1:]
    return ",".join(numbers)


def new_replica_set(deployment: Object, old: Sequence[Object], latest: int, kind: OwnerKind) -> Object:
    """The set for the Deployment's template, with the size that is allowed now."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = copy.deepcopy(spec["template"])
    name_hash = short_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    name = f"{metadata['name'][: 253 - 1 - len(name_hash)]}-{name_hash}"
    template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), HASH: name_hash}
    selector = copy.deepcopy(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: name_hash}
    copied = {key: value for key, value in annotations_of(deployment).items() if key not in _OWN}
    return {
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {**copied, REVISION: str(latest), **size_annotations(deployment)},
            "ownerReferences": [kind.controller_reference(deployment)],
        },
        "spec": {
            "replicas": _initial_size(deployment, old),
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": selector,
            "template": template,
        },
    }


def _initial_size(deployment: Object, old: Sequence[Object]) -> int:
    allowed = rollout_bounds_of(deployment)
    if deployment["spec"]["strategy"]["type"] != "RollingUpdate":
        return allowed.replicas
    return new_set_size(ReplicaSetCounts("", 0), replica_counts(old), allowed)
