"""The volumes of a snapshot that are force-detached (pure): one round of the attach-detach controller."""

from collections.abc import Iterator
from datetime import datetime

from lastcall.failover.upstream import caution, controller_manager_rules
from lastcall.failover.upstream.controller_manager_rules import DetachReason
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model.snapshot import Node, PersistentVolume, SnapshotPod, VolumeAttachment
from lastcall.model.volumes import attachment_of, unique_name

_UNBOUND = ("Released", "Failed")
"""Phases of volumes whose claim is gone, although the volume may still name it."""
_SOME = ""
"""A volume of which only the claim is known. By lastcall's rules it may be any without a PersistentVolume here."""


def forced_detachments(
    cluster: SnapshotIndex, rules: PlanRules, now: datetime
) -> Iterator[tuple[VolumeAttachment, DetachReason]]:
    """The attachments that are force-detached, each with its reason; ordinary detachments are left out.

    A volume is force-detached only if no pod on its node needs it: a pod that exists in this snapshot keeps its
    volumes.
    """
    names = {one.metadata.name: _unique_name(one) for one in cluster.snapshot.volumes}
    wanted = _wanted_volumes(cluster, rules, now)
    for attachment in cluster.snapshot.attachments:
        known, node = names.get(attachment.spec.source.persistent_volume_name), attachment.spec.node_name
        volume = known or _reported_volume(cluster, attachment)
        if not volume or (volume, node) in wanted:
            continue
        if not known and not rules.upstream and (_SOME, node) in wanted:
            continue
        why = _detach_reason(cluster, volume, node, rules)
        if why in (None, DetachReason.UNMOUNTED):
            continue
        if rules.upstream or not caution.force_objection(cluster, node, now):
            yield attachment, why


def _detach_reason(cluster: SnapshotIndex, volume: str, name: str, rules: PlanRules) -> DetachReason | None:
    """A volume counts as mounted until its node reports that it is not (``AddVolumeNode``).

    A missing node cannot report that, and neither can a node that does not list the volume as attached.
    """
    node = cluster.nodes.get(name)
    shown = node is not None and volume in [one.name for one in node.status.volumes_attached]
    mounted = not shown or (node is not None and volume in node.status.volumes_in_use)
    return controller_manager_rules.detach_reason(
        mounted=mounted, expired=rules.allows_timeout_detach, node=cluster.node_state(name)
    )


def _wanted_volumes(cluster: SnapshotIndex, rules: PlanRules, now: datetime) -> set[tuple[str, str]]:
    """The volumes that pods need, each with the node; pods of missing nodes do not count.

    ``_SOME`` stands for the volume of a claim to which no PersistentVolume of the snapshot is bound.
    """
    bound: dict[tuple[str, str], list[PersistentVolume | None]] = {}
    for volume in cluster.snapshot.volumes:
        if (claim := volume.spec.claim_ref) and volume.status.phase not in _UNBOUND:
            bound.setdefault((claim.namespace, claim.name), []).append(volume)
    return {
        (_unique_name(volume) if volume else _SOME, pod.spec.node_name)
        for pod in cluster.snapshot.pods
        if (node := cluster.node_of(pod)) and _needs_volumes(pod, node, rules, now)
        for claim in pod.claim_names
        for volume in bound.get((pod.metadata.namespace, claim), [None])
    }


def _needs_volumes(pod: SnapshotPod, node: Node, rules: PlanRules, now: datetime) -> bool:
    """By lastcall's rules, a pod that stays on an out-of-service node keeps its volumes, even if none of it runs."""
    if controller_manager_rules.needs_volumes(
        phase=pod.status.phase, terminating=pod.is_terminating, running=pod.is_running
    ):
        return True
    if rules.upstream or pod.status.phase in controller_manager_rules.FINISHED or not node.out_of_service:
        return False
    return bool(caution.staying_reason(pod, node, now, comparisons=rules.comparisons))


def _unique_name(volume: PersistentVolume) -> str:
    """The volume's name in node status; the PersistentVolume's name for a migrated in-tree driver."""
    csi = volume.spec.csi
    return unique_name(csi.driver, csi.volume_handle) if csi else volume.metadata.name


def _reported_volume(cluster: SnapshotIndex, attachment: VolumeAttachment) -> str:
    """The volume of an attachment without a PersistentVolume, looked up in the node's list of attached volumes."""
    name = attachment.spec.node_name
    node = cluster.nodes.get(name)
    reported = [one.name for one in node.status.volumes_attached] if node else []
    return next((one for one in reported if attachment_of(one, name) == attachment.metadata.name), "")
