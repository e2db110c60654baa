"""The ReplicaSets of a Deployment: how they are named, numbered and made (``deployment/util/deployment_util.go``)."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from lastcall.lab.controllers.hashing import short_hash
from lastcall.lab.controllers.owning import Kind
from lastcall.lab.controllers.rollouts import Bounds, Part, bounds, grown
from lastcall.lab.controllers.view import Object

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
"""Characters of old revision numbers that a set remembers."""


def annotations(obj: Object) -> Mapping[str, str]:
    """Of its metadata."""
    found: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return found


def number(obj: Object, annotation: str) -> int | None:
    """An annotation that is a number; None if it is missing or something else."""
    said = annotations(obj).get(annotation, "")
    return int(said) if said.isdecimal() else None


def revision(replica_set: Object) -> int:
    """Its number in the history; 0 if it has none."""
    return number(replica_set, REVISION) or 0


def bounds_of(deployment: Object) -> Bounds:
    """What its strategy allows. A Recreate has all or nothing."""
    spec = deployment["spec"]
    strategy, replicas = spec["strategy"], spec["replicas"]
    if strategy["type"] != "RollingUpdate":
        return Bounds(replicas, 0, 0)
    rolling = strategy.get("rollingUpdate") or {}
    return bounds(replicas, rolling.get("maxSurge"), rolling.get("maxUnavailable"))


def parts_of(sets: Sequence[Object]) -> list[Part]:
    """Their numbers."""
    return [
        Part(
            name=one["metadata"]["name"],
            replicas=one["spec"]["replicas"],
            available=(one.get("status") or {}).get("availableReplicas", 0),
            before=number(one, MOST),
            age=(one["metadata"]["creationTimestamp"], one["metadata"]["name"]),
        )
        for one in sets
    ]


def marks(deployment: Object) -> dict[str, str]:
    """What a set notes about the size of its Deployment, by which scaling is told from rolling out."""
    allowed = bounds_of(deployment)
    return {DESIRED: str(allowed.replicas), MOST: str(allowed.most)}


def same_template(replica_set: Object, deployment: Object) -> bool:
    """Whether both make the same pods, but for the label that tells sets apart."""
    return bool(_plain(replica_set["spec"]["template"]) == _plain(deployment["spec"]["template"]))


def _plain(template: Object) -> Any:
    metadata = {name: value for name, value in (template.get("metadata") or {}).items() if value}
    labels = {name: value for name, value in (metadata.pop("labels", None) or {}).items() if name != HASH}
    return labels, metadata, template["spec"]


def refreshed(new: Object, deployment: Object, latest: int) -> Object:
    """The patch that brings the newest set up to date: its revision and what it has from the Deployment."""
    present = annotations(new)
    change = {
        name: value
        for name, value in annotations(deployment).items()
        if name not in _OWN and present.get(name) != value
    }
    before = revision(new)
    if before < latest:
        change[REVISION] = str(latest)
        if REVISION in present:
            change[HISTORY] = _history(present.get(HISTORY, ""), str(before))
    patch: Object = {"metadata": {"annotations": change}} if change else {}
    ready_seconds = deployment["spec"].get("minReadySeconds", 0)
    if new["spec"].get("minReadySeconds", 0) != ready_seconds:
        patch["spec"] = {"minReadySeconds": ready_seconds}
    return patch


def _history(known: str, number: str) -> str:
    """The revisions that a set has been, the oldest forgotten first."""
    numbers = [*(known.split(",") if known else ()), number]
    while len(",".join(numbers)) > _LONGEST_HISTORY:
        numbers = numbers[1:]
    return ",".join(numbers)


def new_set(deployment: Object, old: Sequence[Object], latest: int, kind: Kind) -> Object:
    """The set of the Deployment's template, as large as may be now."""
    metadata, spec = deployment["metadata"], deployment["spec"]
    template = copy.deepcopy(spec["template"])
    name_hash = short_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    name = f"{metadata['name'][: 253 - 1 - len(name_hash)]}-{name_hash}"
    template["metadata"]["labels"] = {**(template["metadata"].get("labels") or {}), HASH: name_hash}
    selector = copy.deepcopy(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: name_hash}
    copied = {key: value for key, value in annotations(deployment).items() if key not in _OWN}
    return {
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": dict(template["metadata"]["labels"]),
            "annotations": {**copied, REVISION: str(latest), **marks(deployment)},
            "ownerReferences": [kind.reference(deployment)],
        },
        "spec": {
            "replicas": _first_size(deployment, old),
            "minReadySeconds": spec.get("minReadySeconds", 0),
            "selector": selector,
            "template": template,
        },
    }


def _first_size(deployment: Object, old: Sequence[Object]) -> int:
    allowed = bounds_of(deployment)
    if deployment["spec"]["strategy"]["type"] != "RollingUpdate":
        return allowed.replicas
    return grown(Part("", 0), parts_of(old), allowed)
