"""What a shutdown changes of its pods' objects (pure).

A pod whose controller makes a replacement elsewhere is deleted: the replacement starts while the pod ends. All others
keep their objects, and the kubelet restarts them after the boot. Such a pod only becomes not ready, so that Services
send it no traffic; a terminal phase would be final, and the kubelet would not run it again.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from lastcall import names
from lastcall.graceful.cluster.node_changes import api_time
from lastcall.model.own_pods import is_plugin_directory
from lastcall.model.pods import OwnerReference, Pod

Patch = dict[str, Any]

_STAYS_WITH = ("DaemonSet", "Node")
"""Controllers whose pods belong to this node: a DaemonSet's is made again here, a mirror pod follows its static pod."""


class ObjectFate(Enum):
    """What happens to a pod's object when its node shuts down."""

    DELETED = "Deleted"
    KEPT = "Kept"


def object_fate(pod: Pod) -> ObjectFate:
    """DELETED if the pod's controller is neither a DaemonSet nor a Node; a pod without a known controller is KEPT."""
    owner = controller_of(pod)
    return ObjectFate.DELETED if owner and owner.kind not in _STAYS_WITH else ObjectFate.KEPT


def controller_of(pod: Pod) -> OwnerReference | None:
    """The owner that controls the pod (metav1.GetControllerOf)."""
    return next((one for one in pod.metadata.owner_references or () if one.controller), None)


def needs_disruption_target(pod: Pod) -> bool:
    """Whether DisruptionTarget has to stand before the DELETE: a Job's podFailurePolicy decides by it."""
    owner = controller_of(pod)
    return owner is not None and owner.kind == "Job"


def attachable_volumes(pod: Pod) -> tuple[str, ...]:
    """The names of the pod's volumes that may be attached to this node: they have to be unmounted before others may.

    Those of the spec, for a pod whose directory on the node cannot be read.
    """
    return tuple(volume.name for volume in pod.spec.volumes or () if volume.is_attachable)


def serves_volumes(pod: Pod) -> bool:
    """Whether the pod runs a CSI driver, so that it has to outlive the unmounting of volumes.

    A driver registers with the kubelet by sockets in its directories ``plugins`` and ``plugins_registry``.
    """
    paths = (volume.host_path.path for volume in pod.spec.volumes or () if volume.host_path)
    return any(is_plugin_directory(path) for path in paths)


def deletion_grace(grace: float) -> int:
    """GracePeriodSeconds of the DELETE: at least 1, because 0 removes the object while its containers run."""
    return max(1, math.ceil(grace))


def disruption_patch(wall: float) -> Patch:
    """The strategic merge patch that announces the disruption, with the kubelet's reason and message."""
    return {"status": {"conditions": [_disruption_target(wall)]}}


def not_ready_patch(wall: float) -> Patch:
    """The strategic merge patch that takes a pod out of its Services' endpoints before it gets SIGTERM."""
    return {"status": {"conditions": _not_ready(wall)}}


def final_patch(pod: Pod, exit_codes: Mapping[str, int | None], wall: float) -> Patch:
    """The strategic merge patch of a deleted pod's last status, as the kubelet's own shutdown writes it.

    Always Failed with the reason Terminated: the shutdown interrupted the work, whatever the exit codes are.
    ``exit_codes`` are by container; the end of a container with an unknown code is not written.
    """
    sidecars = {container.name for container in pod.spec.init_containers or ()}
    ended = {name: code for name, code in exit_codes.items() if code is not None}
    main = [_terminated(name, code, wall) for name, code in ended.items() if name not in sidecars]
    beside = [_terminated(name, code, wall) for name, code in ended.items() if name in sidecars]
    return {
        "status": {
            "phase": "Failed",
            "reason": names.TERMINATED_REASON,
            "message": names.TERMINATED_MESSAGE,
            "conditions": [_disruption_target(wall), *_not_ready(wall)],
            **({"containerStatuses": main} if main else {}),
            **({"initContainerStatuses": beside} if beside else {}),
        }
    }


def _disruption_target(wall: float) -> dict[str, str]:
    return _condition(names.DISRUPTION_TARGET, "True", names.TERMINATION_BY_KUBELET, names.TERMINATED_MESSAGE, wall)


def _not_ready(wall: float) -> list[dict[str, str]]:
    kinds = (names.READY, names.CONTAINERS_READY)
    return [_condition(kind, "False", names.TERMINATED_REASON, names.NOT_READY_MESSAGE, wall) for kind in kinds]


def _condition(kind: str, status: str, reason: str, message: str, wall: float) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": api_time(wall),
    }


def _terminated(name: str, code: int, wall: float) -> dict[str, Any]:
    state = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": api_time(wall)}
    return {
        "name": name,
        "ready": False,
        "started": False,
        "state": {"running": None, "waiting": None, "terminated": state},
    }
