"""The pods of a DaemonSet: on which nodes they are to be, and what they look like (``pkg/controller/daemon/util``)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from lastcall.lab.controllers import pods, revisions
from lastcall.lab.controllers.kept import Kept, KeptByNode
from lastcall.lab.controllers.owning import Kind, labels
from lastcall.lab.controllers.scheduling import nodes
from lastcall.lab.controllers.taints import taints_of
from lastcall.lab.controllers.view import Object, Ref, View
from lastcall.model.tolerations import NO_EXECUTE, Toleration, untolerated

GENERATION = "deprecated.daemonset.template.generation"
_GENERATION_LABEL = "pod-template-generation"
_FIELD = "metadata.name"

_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What daemon pods tolerate for ever: they are there for the node, in whatever state it is."""
_TOLERATED_ON_HOST_NETWORK = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


class Fit(NamedTuple):
    """Whether a pod should be on a node, and whether one that is there may stay."""

    run: bool
    stay: bool


def fit(daemon: Object, node: Object) -> Fit:
    """By the node selector, the required affinity and the taints (``NodeShouldRunDaemonPod``)."""
    spec, name = daemon["spec"]["template"]["spec"], node["metadata"]["name"]
    if spec.get("nodeName", name) not in ("", name) or not nodes.wanted({"spec": spec}, node):
        return Fit(run=False, stay=False)
    tolerated = msgspec.convert(_tolerations(spec), list[Toleration])
    taints = taints_of(node)
    if untolerated(taints, tolerated) is None:
        return Fit(run=True, stay=True)
    return Fit(run=False, stay=untolerated(taints, tolerated, effects=(NO_EXECUTE,)) is None)


class Fits:
    """``fit`` of every node, which is asked again only of nodes that have changed: of a large cluster few have."""

    def __init__(self) -> None:
        self._kept: dict[Ref, tuple[Object, KeptByNode[Fit]]] = {}

    def of(self, key: Ref, daemon: Object, view: View) -> Mapping[str, Fit]:
        """By the names of the nodes, in their order; it changes with the next question."""
        spec = daemon["spec"]["template"]["spec"]
        known = self._kept.get(key)
        if known is None or known[0] != spec:
            known = self._kept[key] = spec, KeptByNode(lambda node: fit(daemon, node))
        return known[1].of(view)

    def forget(self, key: Ref) -> None:
        """There is no such DaemonSet any more."""
        self._kept.pop(key, None)


class Own(NamedTuple):
    """A pod of a DaemonSet, and what follows from it at any time."""

    pod: Object
    node: str
    """That it is on or is meant for; empty if it says none, or if it is deleted and has finished."""
    steady: bool
    """Whether it is up or comes up, and is not to go."""
    ready: bool
    letters: str | None
    """The hash of the template that it is of; None if it says none."""
    updated: bool
    """Whether that is the template as it is now."""


class Owns:
    """``Own`` of every pod, found again of pods that have changed, or when the template has."""

    def __init__(self) -> None:
        self._kept: Kept[Own] = Kept()

    def of(self, key: Ref, daemon: Object, letters: str, own: Sequence[Object]) -> list[Own]:
        """In their order; ``letters`` is the hash of the template as it is."""
        by_uid = ((pod["metadata"]["uid"], pod) for pod in own)
        basis = (letters, _generation(daemon))
        return self._kept.of(key, basis, by_uid, lambda pod: _own(pod, daemon, letters))

    def forget(self, key: Ref) -> None:
        """There is no such DaemonSet any more."""
        self._kept.forget(key)


def _own(pod: Object, daemon: Object, letters: str) -> Own:
    finished, terminating = pods.phase(pod) in pods.FINISHED, bool(pod["metadata"].get("deletionTimestamp"))
    return Own(
        pod,
        node="" if finished and terminating else target(pod),
        steady=not finished and not terminating,
        ready=pods.ready(pod),
        letters=labels(pod).get(revisions.LABEL),
        updated=updated(pod, daemon, letters),
    )


def target(pod: Object) -> str:
    """The node that it is on or is meant for; empty if it says none (``GetTargetNodeName``)."""
    if node := pod["spec"].get("nodeName"):
        return str(node)
    meant = nodes.named(pod) or ()
    return next(iter(meant)) if len(meant) == 1 else ""


def new_pod(daemon: Object, kind: Kind, node: str, letters: str) -> Object:
    """One for a node; the scheduler binds it, to this node alone."""
    pod = pods.from_template(daemon["spec"]["template"], daemon, kind.api_version, kind.kind)
    pod["metadata"]["labels"][revisions.LABEL] = letters
    if generation := _generation(daemon):
        pod["metadata"]["labels"][_GENERATION_LABEL] = generation
    pod["spec"]["tolerations"] = _tolerations(pod["spec"])
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    only = {"matchFields": [{"key": _FIELD, "operator": "In", "values": [node]}]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [only]}
    return pod


def updated(pod: Object, daemon: Object, letters: str) -> bool:
    """Whether it is of the template as it is now (``IsPodUpdated``)."""
    generation, own = _generation(daemon), labels(pod)
    same = bool(generation) and own.get(_GENERATION_LABEL) == generation
    return same or own.get(revisions.LABEL) == letters


def _generation(daemon: Object) -> str:
    return str((daemon["metadata"].get("annotations") or {}).get(GENERATION, ""))


def _tolerations(spec: Object) -> list[Object]:
    """Its own and those of all daemon pods, which replace the same ones with a time."""
    wanted = [*_TOLERATED, *(_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ())]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    kept = [
        one
        for one in spec.get("tolerations") or ()
        if not any(all(one.get(name, "") == mine[name] for name in mine) for mine in added)
    ]
    return [*kept, *added]
