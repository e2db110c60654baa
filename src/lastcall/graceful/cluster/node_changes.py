"""What a shutdown changes of its Node, and how that is undone (pure).

The kubelet is stopped meanwhile, so the agent writes what the kubelet would: Ready=False with its reason and message
(pkg/kubelet/kubelet_node_status.go), and the conditions of KEP-5683. It cordons the Node too. The annotation
``lastcall.dev/node-shutdown`` says what was changed, so that any later run of the agent can undo exactly that.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from typing import Any

import msgspec

from lastcall import names
from lastcall.model.shutdown_node import ShutdownMark, ShutdownNode, is_cordoned_by_others, read_mark

SHUTDOWN_CONDITIONS = (names.SHUTDOWN_IN_PROGRESS, names.DRAIN_IN_PROGRESS)
"""The conditions with the reason NodeShutdown that are True while the shutdown lasts, in the order of the patch."""

Patch = dict[str, Any]


DEADLINE_SECONDS = 2.0
"""A mark whose deadline differs by less is not written again, in seconds."""


def is_marked(node: ShutdownNode, boot_id: str) -> bool:
    """Whether a shutdown of this boot has marked the Node."""
    mark = read_mark(node.metadata.annotations)
    return mark is not None and mark.boot_id == boot_id


def cordon_patch(node: ShutdownNode, boot_id: str, deadline: float) -> Patch | None:
    """The merge patch that cordons and marks the Node; None if an earlier run of the agent did it for this boot.

    ``deadline`` is when the machine is gone, in seconds since 1970: the guard prepares applications until then.

    A Node that was cordoned before gets the mark only, so that the cordon stays when the mark is removed. A mark of
    an earlier boot passes its cordon on: that boot's agent did not come to undo it. The patch has a resourceVersion,
    so that a cordon by somebody else in between is not mistaken for ours.
    """
    before = read_mark(node.metadata.annotations)
    if before and before.boot_id == boot_id and node.spec.unschedulable and _is_near(before.deadline, deadline):
        return None
    ours = not node.spec.unschedulable or (before is not None and before.cordoned)
    until = datetime.fromtimestamp(int(deadline), UTC)
    mark = msgspec.json.encode(ShutdownMark(boot_id=boot_id, cordoned=ours, deadline=until)).decode()
    metadata = {"resourceVersion": node.metadata.resource_version, "annotations": {names.NODE_SHUTDOWN_MARK: mark}}
    return {"metadata": metadata, "spec": {"unschedulable": True}}


def _is_near(known: datetime | None, deadline: float) -> bool:
    return known is not None and abs(known.timestamp() - deadline) < DEADLINE_SECONDS


def status_patch(wall: float) -> Patch:
    """The strategic merge patch of the Node's status at the beginning of a shutdown, at ``wall`` (seconds since 1970)."""
    conditions = [_condition(names.READY, "False", names.NOT_READY_REASON, names.NOT_READY_MESSAGE, wall)]
    conditions += (
        _condition(kind, "True", names.REFUSED_REASON, names.NOT_READY_MESSAGE, wall) for kind in SHUTDOWN_CONDITIONS
    )
    return {"status": {"conditions": conditions}}


def is_announced(node: ShutdownNode) -> bool:
    """Whether the Node says that it shuts down, whoever wrote it: a kubelet that runs writes its own Ready.

    A kubelet with conditions of its own (KEP-6249) may write the same ones with another reason; then they are its own.
    """
    now = {one.type: one.status for one in node.status.conditions or ()}
    wanted = {names.READY: "False"} | dict.fromkeys(SHUTDOWN_CONDITIONS, "True")
    return all(now.get(kind) == status for kind, status in wanted.items())


def undo_patch(node: ShutdownNode) -> Patch | None:
    """The merge patch that removes the mark, and the cordon if it is ours; None if the Node has no mark.

    A cordon that somebody has set after another one has uncordoned the Node is not ours, though the mark says so.
    """
    mark = read_mark(node.metadata.annotations)
    if mark is None:
        return None
    is_ours = mark.cordoned and not is_cordoned_by_others(node)
    metadata = {"resourceVersion": node.metadata.resource_version, "annotations": {names.NODE_SHUTDOWN_MARK: None}}
    return {"metadata": metadata, **({"spec": {"unschedulable": None}} if is_ours else {})}


def undo_status_patch(node: ShutdownNode) -> Patch | None:
    """The strategic merge patch that removes the conditions that ``status_patch`` added; None if there are none.

    Conditions with another reason belong to other writers and stay. Ready is the kubelet's again.
    """
    ours = [
        {"type": one.type, "$patch": "delete"}
        for one in node.status.conditions or ()
        if one.type in SHUTDOWN_CONDITIONS and one.reason == names.REFUSED_REASON
    ]
    return {"status": {"conditions": ours}} if ours else None


def release_patch(node: ShutdownNode, unmounted: AbstractSet[str]) -> Patch | None:
    """The patch of the Node's status that removes unmounted volumes from ``volumesInUse``; None if it has none of them.

    The attach-detach controller detaches a volume only when it is not in that list. The list is replaced as a whole, so
    the patch has a resourceVersion: what a kubelet has added in between must not be lost.
    """
    before = node.status.volumes_in_use or ()
    left = [name for name in before if name not in unmounted]
    if len(left) == len(before):
        return None
    return {"metadata": {"resourceVersion": node.metadata.resource_version}, "status": {"volumesInUse": left}}


def lease_patch(wall: float) -> Patch:
    """The merge patch that renews the node's Lease in kube-node-lease, as the kubelet does every ten seconds."""
    moment = datetime.fromtimestamp(wall, UTC)
    return {"spec": {"renewTime": f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond:06d}Z"}}


def _condition(kind: str, status: str, reason: str, message: str, wall: float) -> Mapping[str, str]:
    since = api_time(wall)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": since,
        "lastTransitionTime": since,
    }


def api_time(wall: float) -> str:
    """Seconds since 1970 as a metav1.Time, which has whole seconds."""
    return f"{datetime.fromtimestamp(int(wall), UTC):%Y-%m-%dT%H:%M:%SZ}"
