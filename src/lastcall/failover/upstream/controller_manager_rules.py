"""What kube-controller-manager takes away by force, and why (pure): the rules of Kubernetes 1.36.

``pkg/controller/podgc/gc_controller.go`` and ``pkg/controller/volume/attachdetach/reconciler/reconciler.go``. How long a pod
stays on a tainted node is ``model.tolerations.seconds_tolerated``. Where these rules are unsafe, ``caution`` is stricter.
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
    """What is known of a node. One without the condition Ready is not ready; of the taint only the key counts."""

    ready: bool
    out_of_service: bool = False


class RemovalReason(Enum):
    """Why a pod is removed by force; the values are those of ``pod_gc_collector_force_delete_pods_total``."""

    TERMINATED = "terminated"
    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


def removal_reason(
    *, terminating: bool, bound: bool, node: UpstreamNodeState | None, missed: bool
) -> RemovalReason | None:
    """Whether a pod's object is removed although its kubelet has not confirmed its end; None if it is not.

    ``bound``: it has a node's name; ``node`` is None if there is no such node, and ``missed`` if that is so for longer
    than the quarantine. Nothing else counts: not the phase, not who owns the pod, not what it tolerates.
    """
    if terminating and not bound:
        return RemovalReason.UNSCHEDULED
    if not bound:
        return None
    if node is None:
        return RemovalReason.ORPHANED if missed else None
    return RemovalReason.OUT_OF_SERVICE if terminating and node.out_of_service and not node.ready else None


def is_finished(phase: str) -> bool:
    """Whether a pod counts for the threshold of finished pods (``isPodTerminated`` of Pod GC)."""
    return phase not in UNFINISHED


@dataclass(frozen=True, order=True)
class RemovalOrder:
    """The order in which finished pods go: those that were evicted, then the oldest (``byEvictionAndCreationTimestamp``).

    ``created`` in seconds; the namespace makes an order of what has none there.
    """

    stays: bool
    created: float
    name: str
    namespace: str


def removal_order(*, phase: str, reason: str, created: float, name: str, namespace: str) -> RemovalOrder:
    """Of a finished pod."""
    return RemovalOrder(not (phase == "Failed" and reason == "Evicted"), created, name, namespace)


def surplus_pods(pods: Iterable[T], threshold: int, of: Callable[[T], RemovalOrder]) -> list[T]:
    """Those of the finished pods that go, so that ``threshold`` stay (``gcTerminated``); none if it is not above 0."""
    oldest = sorted(pods, key=of)
    return oldest[: max(0, len(oldest) - threshold)] if threshold > 0 else []


def needs_volumes(*, phase: str, terminating: bool, running: bool) -> bool:
    """Whether a pod still wants its volumes to be attached (not ``IsPodTerminated`` of ``pkg/volume/util``).

    ``running``: one of its containers is neither waiting nor terminated, as far as anybody knows.
    """
    return phase not in FINISHED and (running or not terminating)


class DetachReason(Enum):
    """Why a volume is detached that no pod on its node wants any more.

    But for the first they are done by force, and the values are those of
    ``attach_detach_controller_attachdetach_controller_forced_detaches``.
    """

    UNMOUNTED = "unmounted"
    TIMEOUT = "timeout"
    OUT_OF_SERVICE = "out-of-service"


def detach_reason(*, mounted: bool, expired: bool, node: UpstreamNodeState | None) -> DetachReason | None:
    """Whether a volume is detached now; None while its node may still use it.

    ``mounted``: the node says that it uses the volume, or last said so; ``expired``: the time for unmounting is over, and
    force on timeout is not disabled; ``node`` is None if there is no such node. A node that is out of service need not
    be unready. Who detaches without asking the node again counts as forced, also if the volume was unmounted.
    """
    ready = node is not None and node.ready
    out_of_service = node is not None and node.out_of_service
    if mounted and not out_of_service and (ready or not expired):
        return None
    if expired:
        return DetachReason.TIMEOUT
    return DetachReason.OUT_OF_SERVICE if out_of_service else DetachReason.UNMOUNTED
