"""What kube-controller-manager forces, and why (pure): the rules of Kubernetes 1.36.

``pkg/controller/podgc/gc_controller.go`` and ``pkg/controller/volume/attachdetach/reconciler/reconciler.go``. For how
long a pod stays on a tainted node, see ``model.tolerations.seconds_tolerated``. Where these rules are unsafe,
``caution`` is stricter.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

T = TypeVar("T")

UNFINISHED = ("Pending", "Running", "Unknown")
FINISHED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class UpstreamNodeState:
    """The facts about a node. A node without a Ready condition is not ready; of the taint only the key counts."""

    ready: bool
    out_of_service: bool = False


class RemovalReason(Enum):
    """Why a pod is force-deleted; the values are those of ``pod_gc_collector_force_delete_pods_total``."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


def removal_reason(
    *, terminating: bool, bound: bool, node: UpstreamNodeState | None, missed: bool
) -> RemovalReason | None:
    """Why a pod object is removed although its kubelet has not confirmed the end; None if it is not removed.

    ``bound``: the pod names a node. ``node`` is None if that node does not exist; ``missed``: for longer than the
    quarantine. No other field matters: neither phase, owner nor tolerations.
    """
    if terminating and not bound:
        return RemovalReason.UNSCHEDULED
    if not bound:
        return None
    if node is None:
        return RemovalReason.ORPHANED if missed else None
    return RemovalReason.OUT_OF_SERVICE if terminating and node.out_of_service and not node.ready else None


def is_finished(phase: str) -> bool:
    """Whether a pod counts towards the threshold of finished pods (``isPodTerminated`` of Pod GC)."""
    return phase not in UNFINISHED


@dataclass(frozen=True, order=True)
class RemovalOrder:
    """The order of removal of finished pods: evicted ones first, then the oldest (``byEvictionAndCreationTimestamp``).

    ``created`` in seconds. The namespace makes the order total, which upstream's is not.
    """

    stays: bool
    created: float
    name: str
    namespace: str


def removal_order(*, phase: str, reason: str, created: float, name: str, namespace: str) -> RemovalOrder:
    """The place of a finished pod in that order."""
    return RemovalOrder(not (phase == "Failed" and reason == "Evicted"), created, name, namespace)


def surplus_pods(pods: Iterable[T], threshold: int, of: Callable[[T], RemovalOrder]) -> list[T]:
    """The finished pods to remove so that ``threshold`` remain (``gcTerminated``); none if it is not above 0."""
    oldest = sorted(pods, key=of)
    return oldest[: max(0, len(oldest) - threshold)] if threshold > 0 else []


def needs_volumes(*, phase: str, terminating: bool, running: bool) -> bool:
    """Whether a pod still needs its volumes attached (the negation of ``IsPodTerminated`` of ``pkg/volume/util``).

    ``running``: at least one container is neither waiting nor terminated, as far as its status says.
    """
    return phase not in FINISHED and (running or not terminating)


class DetachReason(Enum):
    """Why a volume is detached that no pod on its node needs any more.

    All but the first are forced; their values are those of
    ``attach_detach_controller_attachdetach_controller_forced_detaches``.
    """

    UNMOUNTED = "unmounted"
    TIMEOUT = "timeout"
    OUT_OF_SERVICE = "out-of-service"


def detach_reason(*, mounted: bool, expired: bool, node: UpstreamNodeState | None) -> DetachReason | None:
    """Why a volume is detached now; None while its node may still use it.

    ``mounted``: the node reports, or last reported, that it uses the volume. ``expired``: the time to unmount is over,
    and force on timeout is not disabled. ``node`` is None if the node does not exist. An out-of-service node need not
    be unready. A detach without the node's confirmation counts as forced, even if the volume was unmounted.
    """
    ready = node is not None and node.ready
    out_of_service = node is not None and node.out_of_service
    if mounted and not out_of_service and (ready or not expired):
        return None
    if expired:
        return DetachReason.TIMEOUT
    return DetachReason.OUT_OF_SERVICE if out_of_service else DetachReason.UNMOUNTED
