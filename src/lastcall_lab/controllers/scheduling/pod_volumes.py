"""Volumes and the nodes that can use them (pure): ``volumebinding``, ``volumerestrictions``, ``nodevolumelimits``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lastcall_lab.controllers.framework.view import Object, View, claim_names_of
from lastcall_lab.controllers.objects import node_affinity, pods
from lastcall_lab.controllers.scheduling.scheduling_nodes import NodeRejection, SchedulingNode
from lastcall_lab.controllers.volumes import volume_matching
from lastcall_lab.controllers.volumes.volume_matching import ATTACHMENTS, CLAIMS, SELECTED_NODE, VOLUMES

_CONFLICT = "node(s) didn't find available persistent volumes to bind"
_ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
_LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
_FULL = "node(s) exceed max volume count"


class PodUnschedulable(Exception):
    """The pod fits no node until something about its claims changes; the message says what."""


@dataclass(frozen=True)
class VolumePlan:
    """The binding of the unbound claims if the pod runs on one node."""

    bind: Mapping[str, Object] = field(default_factory=dict)
    """Claims and their volumes."""
    provision: Sequence[str] = ()
    """Claims that need a provisioned volume."""


@dataclass(frozen=True)
class PodVolumes:
    """The volumes of a pod to be scheduled."""

    bound: Sequence[Object]
    """The volumes of its bound claims; an empty object for a deleted one."""
    unbound: Sequence[Object]
    """Claims that wait for their first consumer."""
    blocked: bool
    """Whether another pod uses a ReadWriteOncePod volume of it."""

    def reject(self, room: SchedulingNode, view: View) -> NodeRejection | None:
        """Why the node does not fit; None if it fits."""
        if self.blocked:
            return NodeRejection((_IN_USE,), others=True)
        if self._exceeds_limit(room, view):
            return NodeRejection((_FULL,), others=True)
        reasons = tuple(self._rejection_reasons(room, view))
        return NodeRejection(reasons) if reasons else None

    def plan_volumes(self, node: Object, view: View) -> VolumePlan | None:
        """How the claims get volumes on the node; None if they cannot."""
        bind: dict[str, Object] = {}
        provision = []
        for claim in self.unbound:
            name, selected = claim["metadata"]["name"], volume_matching.annotation_of(claim, SELECTED_NODE)
            if selected and selected != node["metadata"]["name"]:
                return None
            taken = {one["metadata"]["name"] for one in bind.values()}
            volume = None if selected else volume_matching.best_volume(claim, view, node=node, without=taken)
            if volume:
                bind[name] = volume
            elif _can_provision(claim, node, view):
                provision.append(name)
            else:
                return None
        return VolumePlan(bind, tuple(provision))

    def _rejection_reasons(self, room: SchedulingNode, view: View) -> Iterator[str]:
        affinities = [((volume.get("spec") or {}).get("nodeAffinity") or {}).get("required") for volume in self.bound]
        if any(one is not None and not node_affinity.matches_node_selector(one, room.node) for one in affinities):
            yield _ELSEWHERE
        if self.plan_volumes(room.node, view) is None:
            yield _CONFLICT
        if not all(self.bound):
            yield _LOST

    def _exceeds_limit(self, room: SchedulingNode, view: View) -> bool:
        """Whether the node's volume limit is exceeded. Counts used and attached volumes, each once."""
        found = view.get("csinodes.storage.k8s.io", "", room.name) or {"spec": {}}
        drivers = found["spec"].get("drivers") or ()
        limits = {one["name"]: one["allocatable"]["count"] for one in drivers if one.get("allocatable")}
        if not limits:
            return False
        new = {handle for volume in self.bound if (handle := _csi_handle(volume))}
        present = {handle for pod in room.pods for handle in _volume_handles(pod, view)} | _attached_volumes(
            room.name, view
        )
        return any(
            any(one[0] == driver for one in new - present) and sum(one[0] == driver for one in new | present) > limit
            for driver, limit in limits.items()
        )


def pod_volumes(pod: Object, view: View) -> PodVolumes:
    """The volumes of a pod. PodUnschedulable if a claim rules out every node."""
    namespace = pod["metadata"]["namespace"]
    found = [_usable_claim(name, view.get(CLAIMS, namespace, name)) for name in claim_names_of(pod)]
    bound = [one for one in found if volume_matching.is_bound(one)]
    unbound = [one for one in found if not volume_matching.is_bound(one)]
    if any(one["spec"].get("volumeName") or not volume_matching.is_binding_delayed(one, view) for one in unbound):
        raise PodUnschedulable("pod has unbound immediate PersistentVolumeClaims")
    volumes = [view.get(VOLUMES, "", one["spec"]["volumeName"]) or {} for one in bound]
    return PodVolumes(volumes, unbound, any(_is_exclusive(one) and _is_in_use(one, pod, view) for one in found))


def _usable_claim(name: str, claim: Object | None) -> Object:
    if claim is None:
        raise PodUnschedulable(f'persistentvolumeclaim "{name}" not found')
    if (claim.get("status") or {}).get("phase") == "Lost":
        volume = claim["spec"].get("volumeName", "")
        raise PodUnschedulable(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"')
    if claim["metadata"].get("deletionTimestamp"):
        raise PodUnschedulable(f'persistentvolumeclaim "{name}" is being deleted')
    return claim


def _can_provision(claim: Object, node: Object, view: View) -> bool:
    found = volume_matching.storage_class_of(claim, view)
    if found is None or found["provisioner"] == "kubernetes.io/no-provisioner":
        return False
    topologies = found.get("allowedTopologies") or ()
    terms = [one.get("matchLabelExpressions") or () for one in topologies]
    labels = node_affinity.node_labels(node)
    return not terms or any(all(labels.get(one["key"]) in one["values"] for one in term) for term in terms)


def _is_exclusive(claim: Object) -> bool:
    return "ReadWriteOncePod" in (claim["spec"].get("accessModes") or ())


def _is_in_use(claim: Object, pod: Object, view: View) -> bool:
    metadata = claim["metadata"]
    others = view.pods_of_claim(metadata["namespace"], metadata["name"])
    return any(
        one["spec"].get("nodeName")
        and pods.pod_phase(one) not in pods.FINISHED
        and one["metadata"]["uid"] != pod["metadata"]["uid"]
        for one in others
    )


def _volume_handles(pod: Object, view: View) -> Iterator[tuple[str, str]]:
    for name in claim_names_of(pod):
        claim = view.get(CLAIMS, pod["metadata"]["namespace"], name) or {"spec": {}}
        volume = view.get(VOLUMES, "", claim["spec"].get("volumeName", ""))
        if volume and (handle := _csi_handle(volume)):
            yield handle


def _attached_volumes(node: str, view: View) -> set[tuple[str, str]]:
    specs = [one["spec"] for one in view.all(ATTACHMENTS)]
    names = [one["source"].get("persistentVolumeName", "") for one in specs if one["nodeName"] == node]
    volumes = [view.get(VOLUMES, "", name) for name in names]
    return {handle for volume in volumes if volume and (handle := _csi_handle(volume))}


def _csi_handle(volume: Object) -> tuple[str, str] | None:
    """Driver and handle; None for other kinds of volumes."""
    csi = (volume.get("spec") or {}).get("csi")
    return (csi["driver"], csi["volumeHandle"]) if csi else None
