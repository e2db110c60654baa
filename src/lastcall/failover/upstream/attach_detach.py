"""Which volumes of a snapshot are detached by force (pure): one round of the attach-detach controller."""

from collections.abc import Iterator
from datetime import datetime

from lastcall.failover.upstream import caution, controller_manager_rules
from lastcall.failover.upstream.controller_manager_rules import DetachReason
from lastcall.failover.upstream.plan_rules import PlanRules
from lastcall.failover.upstream.snapshot_index import SnapshotIndex
from lastcall.model.snapshot import Node, PersistentVolume, SnapshotPod, VolumeAttachment
from lastcall.model.volumes import attachment_of, unique_name

_UNBOUND = ("Released", "Failed")
"""Phases of volumes whose claim is gone; its name may stand there still."""
_SOME = ""
"""A volume of which only the claim is known: by lastcall's rules it may be any that has no PersistentVolume here."""


def forced_detachments(
    cluster: SnapshotIndex, rules: PlanRules, now: datetime
) -> Iterator[tuple[VolumeAttachment, DetachReason]]:
    """Those that are detached by force; ordinary detachments are left out.

    A volume goes by force only when no pod on its node wants it: a pod that is there in this snapshot keeps it.
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
    """A volume counts as mounted until its node has shown that it is not (``AddVolumeNode``).

    A node that is missing cannot show that, nor one that does not report the volume as attached.
    """
    node = cluster.nodes.get(name)
    shown = node is not None and volume in [one.name for one in node.status.volumes_attached]
    mounted = not shown or (node is not None and volume in node.status.volumes_in_use)
    return controller_manager_rules.detach_reason(
        mounted=mounted, expired=rules.allows_timeout_detach, node=cluster.node_state(name)
    )


def _wanted_volumes(cluster: SnapshotIndex, rules: PlanRules, now: datetime) -> set[tuple[str, str]]:
    """The volumes that pods want, each with the node; pods of nodes that are missing do not count.

    ``_SOME`` stands for the volume of a claim that no PersistentVolume of the snapshot is bound to.
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
    """Who stays on a node that is out of service keeps its volumes by lastcall's rules, although none of it seems to run."""
    if controller_manager_rules.needs_volumes(
        phase=pod.status.phase, terminating=pod.is_terminating, running=pod.is_running
    ):
        return True
    if rules.upstream or pod.status.phase in controller_manager_rules.FINISHED or not node.out_of_service:
        return False
    return bool(caution.staying_reason(pod, node, now, comparisons=rules.comparisons))


def _unique_name(volume: PersistentVolume) -> str:
    """As nodes call it; its own name if its driver has only moved to CSI, so that its handle is not known."""
    csi = volume.spec.csi
    return unique_name(csi.driver, csi.volume_handle) if csi else volume.metadata.name


def _reported_volume(cluster: SnapshotIndex, attachment: VolumeAttachment) -> str:
    """The volume of an attachment whose PersistentVolume is not there, by what the node says is attached to it."""
    name = attachment.spec.node_name
    node = cluster.nodes.get(name)
    reported = [one.name for one in node.status.volumes_attached] if node else []
    return next((one for one in reported if attachment_of(one, name) == attachment.metadata.name), "")
