"""The pods of a DaemonSet: their nodes and their specification (``pkg/controller/daemon/util``)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from lastcall.model.tolerations import NO_EXECUTE, Toleration, first_untolerated
from lastcall_lab.controllers.framework.findings_cache import FindingsCache, NodeFindings
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View
from lastcall_lab.controllers.objects import node_affinity, pods
from lastcall_lab.controllers.objects.ownership import OwnerKind, object_labels
from lastcall_lab.controllers.objects.taints import taints_of
from lastcall_lab.controllers.workloads import revision_history

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
"""The default tolerations of daemon pods, which stay on their node in any state."""
_TOLERATED_ON_HOST_NETWORK = (("node.kubernetes.io/network-unavailable", "NoSchedule"),)


class NodeFit(NamedTuple):
    """Whether a pod should run on a node, and whether an existing one may stay."""

    run: bool
    stay: bool


def node_fit(daemon: Object, node: Object) -> NodeFit:
    """Decides by node selector, required affinity and taints (``NodeShouldRunDaemonPod``)."""
    spec, name = daemon["spec"]["template"]["spec"], node["metadata"]["name"]
    if spec.get("nodeName", name) not in ("", name) or not node_affinity.fits_node_affinity({"spec": spec}, node):
        return NodeFit(run=False, stay=False)
    tolerated = msgspec.convert(_daemon_tolerations(spec), list[Toleration])
    taints = taints_of(node)
    if first_untolerated(taints, tolerated) is None:
        return NodeFit(run=True, stay=True)
    return NodeFit(run=False, stay=first_untolerated(taints, tolerated, effects=(NO_EXECUTE,)) is None)


class NodeFitCache:
    """Caches ``node_fit`` per node and evaluates it again only for changed nodes, which are few in a large cluster."""

    def __init__(self) -> None:
        self._kept: dict[ObjectRef, tuple[Object, NodeFindings[NodeFit]]] = {}

    def fits_by_node(self, key: ObjectRef, daemon: Object, view: View) -> Mapping[str, NodeFit]:
        """The results by node name, in order. The next call changes the returned mapping."""
        spec = daemon["spec"]["template"]["spec"]
        known = self._kept.get(key)
        if known is None or known[0] != spec:
            known = self._kept[key] = spec, NodeFindings(lambda node: node_fit(daemon, node))
        return known[1].find_by_node(view)

    def forget(self, key: ObjectRef) -> None:
        """Drops a deleted DaemonSet."""
        self._kept.pop(key, None)


class DaemonPod(NamedTuple):
    """A pod of a DaemonSet, with the time-independent facts derived from it."""

    pod: Object
    node: str
    """The node that it runs on or is meant for; empty if unknown, or if it is deleted and finished."""
    steady: bool
    """Whether it runs or starts, and is not being deleted."""
    ready: bool
    letters: str | None
    """The hash of its template; None if it has none."""
    updated: bool
    """Whether that is the current template."""


class DaemonPodCache:
    """Caches ``DaemonPod`` per pod, and evaluates it again for changed pods or a changed template."""

    def __init__(self) -> None:
        self._kept: FindingsCache[DaemonPod] = FindingsCache()

    def daemon_pods(self, key: ObjectRef, daemon: Object, letters: str, own: Sequence[Object]) -> list[DaemonPod]:
        """The pods in order; ``letters`` is the hash of the current template."""
        by_uid = ((pod["metadata"]["uid"], pod) for pod in own)
        basis = (letters, _template_generation(daemon))
        return self._kept.find_for(key, basis, by_uid, lambda pod: _daemon_pod(pod, daemon, letters))

    def forget(self, key: ObjectRef) -> None:
        """Drops a deleted DaemonSet."""
        self._kept.forget(key)


def _daemon_pod(pod: Object, daemon: Object, letters: str) -> DaemonPod:
    finished, terminating = pods.pod_phase(pod) in pods.FINISHED, bool(pod["metadata"].get("deletionTimestamp"))
    return DaemonPod(
        pod,
        node="" if finished and terminating else target_node(pod),
        steady=not finished and not terminating,
        ready=pods.is_ready(pod),
        letters=object_labels(pod).get(revision_history.LABEL),
        updated=is_pod_updated(pod, daemon, letters),
    )


def target_node(pod: Object) -> str:
    """The node that the pod runs on or is meant for; empty if unknown (``GetTargetNodeName``)."""
    if node := pod["spec"].get("nodeName"):
        return str(node)
    meant = node_affinity.affinity_node_names(pod) or ()
    return next(iter(meant)) if len(meant) == 1 else ""


def new_daemon_pod(daemon: Object, kind: OwnerKind, node: str, letters: str) -> Object:
    """A pod for one node. Its affinity allows only this node; the scheduler binds it."""
    pod = pods.pod_from_template(daemon["spec"]["template"], daemon, kind.api_version, kind.kind)
    pod["metadata"]["labels"][revision_history.LABEL] = letters
    if generation := _template_generation(daemon):
        pod["metadata"]["labels"][_GENERATION_LABEL] = generation
    pod["spec"]["tolerations"] = _daemon_tolerations(pod["spec"])
    affinity = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    only = {"matchFields": [{"key": _FIELD, "operator": "In", "values": [node]}]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [only]}
    return pod


def is_pod_updated(pod: Object, daemon: Object, letters: str) -> bool:
    """Whether the pod matches the current template (``IsPodUpdated``)."""
    generation, own = _template_generation(daemon), object_labels(pod)
    same = bool(generation) and own.get(_GENERATION_LABEL) == generation
    return same or own.get(revision_history.LABEL) == letters


def _template_generation(daemon: Object) -> str:
    return str((daemon["metadata"].get("annotations") or {}).get(GENERATION, ""))


def _daemon_tolerations(spec: Object) -> list[Object]:
    """The pod's tolerations and those of all daemon pods, which replace equal ones with a time limit."""
    wanted = [*_TOLERATED, *(_TOLERATED_ON_HOST_NETWORK if spec.get("hostNetwork") else ())]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in wanted]
    kept = [
        one
        for one in spec.get("tolerations") or ()
        if not any(all(one.get(name, "") == mine[name] for name in mine) for mine in added)
    ]
    return [*kept, *added]
