"""The attach/detach controller: attaches volumes to nodes (``k8s.io/kubernetes/pkg/controller/volume/attachdetach``).

It attaches a volume to the nodes of the pods that use it. It detaches a volume when no pod on the node uses it and the
node has unmounted it, or by force, by ``failover.upstream.verdict.detach_reason``. A volume counts as detached only
when its VolumeAttachment is gone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lastcall.failover.upstream.controller_manager_rules import DetachReason, detach_reason, needs_volumes
from lastcall.model.volumes import attachment_name, unique_name
from lastcall_lab.controllers.framework.actions import (
    Action,
    CreateObject,
    Decision,
    DeleteObject,
    PatchObject,
    RecordEvent,
)
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, claim_names_of, ref_of
from lastcall_lab.controllers.objects import pods, taints
from lastcall_lab.controllers.volumes import volume_matching as match

_LOOP = 0.1
"""Seconds between two reconciliations of the real controller, which notices expired times with that delay."""


@dataclass(frozen=True)
class DetachRules:
    """``max_wait`` seconds (``maxWaitForUnmountDuration``).

    ``force_on_timeout`` is the negation of ``--disable-force-detach-on-timeout``.
    """

    max_wait: float = 360.0
    force_on_timeout: bool = True


@dataclass
class _UnusedAttachment:
    """An attachment that no pod uses: since when, and whether its node last reported the volume as in use."""

    since: float
    mounted: bool = True


@dataclass(frozen=True)
class _CsiVolume:
    """A volume of a CSI driver: its attachments and the pods that use it, by node."""

    name: str
    driver: str
    handle: str
    shared: bool
    attachments: Mapping[str, Object]
    wanted: Mapping[str, Sequence[Object]]
    users: Sequence[Object]

    @property
    def unique_name(self) -> str:
        """The name in node statuses (``v1.UniqueVolumeName``)."""
        return unique_name(self.driver, self.handle)


@dataclass
class _DetachMemory:
    """State that the view does not contain."""

    leaving: dict[str, _UnusedAttachment] = field(default_factory=dict)
    """By the uid of the attachment."""
    told: set[str] = field(default_factory=set)
    """The uids of attachments reported as done."""
    refused: set[tuple[str, str]] = field(default_factory=set)
    """Volume and node of reported multi-attach errors."""


class AttachDetachController:
    """Reconciles a volume when it, its attachments, its pods or their nodes have changed.

    It remembers since when a volume is unused; after a restart that time starts again.
    """

    name = "attachdetach"
    resources: Sequence[str] = ("pods", "nodes", match.CLAIMS, match.VOLUMES, match.ATTACHMENTS)

    def __init__(self, rules: DetachRules | None = None) -> None:
        self._rules = rules or DetachRules()
        self._memory = _DetachMemory()

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The affected volumes."""
        return [
            ObjectRef(match.VOLUMES, "", name) for name in dict.fromkeys(_volume_names(resource, obj, view)) if name
        ]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Attachments to create and delete, and updates of ``volumesAttached`` of the nodes."""
        volume = _csi_volume(key.name, view)
        if volume is None:
            return Decision()
        actions: list[Action] = []
        waits: list[float] = []
        said = ""
        for name, attachment in volume.attachments.items():
            node = view.get("nodes", "", name)
            if name in volume.wanted or attachment["metadata"].get("deletionTimestamp"):
                self._memory.leaving.pop(attachment["metadata"]["uid"], None)
                continue
            leaving = self._track_unused(volume, attachment, node, now)
            waited = now - leaving.since
            expired = waited > self._rules.max_wait and self._rules.force_on_timeout
            why = detach_reason(mounted=leaving.mounted, expired=expired, node=taints.node_state(node))
            if why is None and waited <= self._rules.max_wait:
                waits.append(self._rules.max_wait - waited + _LOOP)
            if why:
                actions += _detach_actions(volume, attachment, node)
            if why in (DetachReason.TIMEOUT, DetachReason.OUT_OF_SERVICE):
                said = f"volume {volume.name} is detached from {name} by force: {why.value}"
        for name, users in volume.wanted.items():
            actions += self._attach_volume(volume, name, users, view)
        self._memory.refused -= {place for place in self._memory.refused if _is_multi_attach_over(place, volume)}
        return Decision(tuple(actions), min(waits, default=None), said)

    def _track_unused(
        self, volume: _CsiVolume, attachment: Object, node: Object | None, now: float
    ) -> _UnusedAttachment:
        leaving = self._memory.leaving.setdefault(attachment["metadata"]["uid"], _UnusedAttachment(now))
        if node is not None:
            leaving.mounted = volume.unique_name in ((node.get("status") or {}).get("volumesInUse") or ())
        return leaving

    def _attach_volume(self, volume: _CsiVolume, name: str, users: Sequence[Object], view: View) -> Iterator[Action]:
        attachment = volume.attachments.get(name)
        if attachment is None:
            others = [one for node, one in volume.attachments.items() if node != name]
            if volume.shared or not others:
                yield CreateObject(match.ATTACHMENTS, "", _new_attachment(volume, name))
            elif not all(one["metadata"].get("deletionTimestamp") for one in others):
                yield from self._report_multi_attach(volume, name, users)
            return
        node = view.get("nodes", "", name)
        if node is None or attachment["metadata"].get("deletionTimestamp") or not attachment["status"].get("attached"):
            return
        attached = _volumes_attached(node)
        if volume.unique_name not in [one["name"] for one in attached]:
            yield _volumes_attached_patch(node, [*attached, {"name": volume.unique_name, "devicePath": ""}])
        if attachment["metadata"]["uid"] not in self._memory.told:
            self._memory.told.add(attachment["metadata"]["uid"])
            said = f'AttachVolume.Attach succeeded for volume "{volume.name}" '
            for user in users:
                yield _pod_event(user, "SuccessfulAttachVolume", said, "Normal")

    def _report_multi_attach(self, volume: _CsiVolume, name: str, users: Sequence[Object]) -> Iterator[Action]:
        """Reports it once: an operator must find out why the other node keeps the volume."""
        if (volume.name, name) in self._memory.refused:
            return
        self._memory.refused.add((volume.name, name))
        elsewhere = [pod for node, found in volume.wanted.items() if node in volume.attachments for pod in found]
        for user in users:
            said = f'Multi-Attach error for volume "{volume.name}" {_volume_users_message(user, elsewhere)}'
            yield _pod_event(user, "FailedAttachVolume", said, "Warning")


def _volume_names(resource: str, obj: Object, view: View) -> Iterator[str]:
    if resource == match.VOLUMES:
        yield obj["metadata"]["name"]
    elif resource == match.CLAIMS:
        yield obj["spec"].get("volumeName", "")
    elif resource == match.ATTACHMENTS:
        yield obj["spec"]["source"].get("persistentVolumeName", "")
    elif resource == "pods":
        for name in claim_names_of(obj):
            claim = view.get(match.CLAIMS, obj["metadata"]["namespace"], name)
            yield claim["spec"].get("volumeName", "") if claim else ""
    else:
        name = obj["metadata"]["name"]
        for attachment in view.all(match.ATTACHMENTS):
            if attachment["spec"]["nodeName"] == name:
                yield from _volume_names(match.ATTACHMENTS, attachment, view)
        for pod in view.on_node(name):
            yield from _volume_names("pods", pod, view)


def _csi_volume(name: str, view: View) -> _CsiVolume | None:
    """None if the volume does not exist or is not attachable."""
    found = view.get(match.VOLUMES, "", name)
    csi = found["spec"].get("csi") if found else None
    if found is None or csi is None:
        return None
    driver, handle = csi["driver"], csi["volumeHandle"]
    attachments = [
        one
        for one in view.all(match.ATTACHMENTS)
        if one["metadata"]["name"] == _own_attachment_name(driver, handle, one)
    ]
    users = _pods_using(found, view)
    wanted: dict[str, list[Object]] = {}
    for pod in users:
        node = pod["spec"].get("nodeName", "")
        if view.get("nodes", "", node) and _pod_needs_volumes(pod):
            wanted.setdefault(node, []).append(pod)
    return _CsiVolume(
        name=name,
        driver=driver,
        handle=handle,
        shared=match.is_multi_attach(found),
        attachments={one["spec"]["nodeName"]: one for one in attachments},
        wanted=wanted,
        users=users,
    )


def _pods_using(volume: Object, view: View) -> list[Object]:
    reference = volume["spec"].get("claimRef")
    if not reference:
        return []
    claim = view.get(match.CLAIMS, reference["namespace"], reference["name"])
    if claim is None or claim["spec"].get("volumeName") != volume["metadata"]["name"]:
        return []
    return view.pods_of_claim(reference["namespace"], reference["name"])


def _pod_needs_volumes(pod: Object) -> bool:
    status = pod.get("status") or {}
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    states = [one.get("state") or {} for kind in kinds for one in status.get(kind) or ()]
    running = not all(state.get("terminated") or state.get("waiting") for state in states)
    terminating = bool(pod["metadata"].get("deletionTimestamp"))
    return needs_volumes(phase=pods.pod_phase(pod), terminating=terminating, running=running)


def _detach_actions(volume: _CsiVolume, attachment: Object, node: Object | None) -> Iterable[Action]:
    """Updates the node first; from then on its kubelet does not mount the volume again."""
    attached = _volumes_attached(node) if node else []
    left = [one for one in attached if one["name"] != volume.unique_name]
    if node and left != attached:
        return (_volumes_attached_patch(node, left),)
    return (DeleteObject(ref_of(match.ATTACHMENTS, attachment), uid=attachment["metadata"]["uid"]),)


def _new_attachment(volume: _CsiVolume, node: str) -> Object:
    source = {"persistentVolumeName": volume.name}
    spec = {"attacher": volume.driver, "nodeName": node, "source": source}
    return {"metadata": {"name": attachment_name(volume.driver, volume.handle, node)}, "spec": spec}


def _own_attachment_name(driver: str, handle: str, attachment: Object) -> str:
    """The name that this controller gives to the volume's attachment; others are left alone."""
    return attachment_name(driver, handle, attachment["spec"]["nodeName"])


def _volumes_attached(node: Object) -> list[Object]:
    return list((node.get("status") or {}).get("volumesAttached") or ())


def _volumes_attached_patch(node: Object, attached: Sequence[Object]) -> PatchObject:
    """Writes the whole list, so the patch is valid only for the known version of the node."""
    metadata, body = node["metadata"], {"status": {"volumesAttached": list(attached)}}
    return PatchObject(ref_of("nodes", node), body, "status", uid=metadata["uid"], revision=metadata["resourceVersion"])


def _volume_users_message(pod: Object, others: Sequence[Object]) -> str:
    """Counts pods of other namespaces instead of naming them."""
    if not others:
        return "Volume is already exclusively attached to one node and can't be attached to another"
    near = [one["metadata"]["name"] for one in others if one["metadata"]["namespace"] == pod["metadata"]["namespace"]]
    far = len(others) - len(near)
    if not near:
        return f"Volume is already used by {far} pod(s) in different namespaces"
    more = f" and {far} pod(s) in different namespaces" if far else ""
    return f"Volume is already used by pod(s) {', '.join(near)}{more}"


def _is_multi_attach_over(place: tuple[str, str], volume: _CsiVolume) -> bool:
    return place[0] == volume.name and place[1] not in volume.wanted


def _pod_event(pod: Object, reason: str, message: str, kind: str) -> RecordEvent:
    source, uid = "attachdetach-controller", pod["metadata"]["uid"]
    return RecordEvent(ref_of("pods", pod), uid, "Pod", "v1", reason, message, type=kind, source=source)
