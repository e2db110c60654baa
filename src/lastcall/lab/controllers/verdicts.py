"""What kube-controller-manager may take away by force, and why (pure): the rules of Kubernetes 1.36.

``pkg/controller/podgc/gc_controller.go``, ``pkg/controller/volume/attachdetach/reconciler/reconciler.go``. How long a pod
stays on a tainted node is ``model.tolerations.seconds_tolerated``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lastcall.model.tolerations import Taint

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The taint by which somebody says that a node is off and stays off (KEP-2268). Only its key counts."""


@dataclass(frozen=True)
class Node:
    """What is known of a node. One without the condition Ready is not ready."""

    ready: bool
    taints: Sequence[Taint] = ()

    @property
    def out_of_service(self) -> bool:
        """Whether it has the taint, of any value and effect."""
        return any(taint.key == OUT_OF_SERVICE for taint in self.taints)


class Removal(Enum):
    """Why a pod is removed by force; the values are those of ``pod_gc_collector_force_delete_pods_total``."""

    OUT_OF_SERVICE = "out-of-service"
    ORPHANED = "orphaned"
    UNSCHEDULED = "unscheduled"


def removal(
    *, terminating: bool, bound: bool, node: Node | None, missing_for: float, quarantine: float
) -> Removal | None:
    """Whether a pod's object is removed although its kubelet has not confirmed its end; None if it is not.

    ``bound``: it has a node's name; ``node`` is None if there is no such node, which has then been missed for
    ``missing_for`` seconds. Nothing else counts: not the phase, not who owns the pod, not what it tolerates.
    """
    if terminating and not bound:
        return Removal.UNSCHEDULED
    if not bound:
        return None
    if node is None:
        return Removal.ORPHANED if missing_for >= quarantine else None
    return Removal.OUT_OF_SERVICE if terminating and node.out_of_service and not node.ready else None


class Detachment(Enum):
    """Why a volume is detached that no pod on its node wants any more."""

    UNMOUNTED = "its node has unmounted it"
    TIMEOUT = "timeout"
    OUT_OF_SERVICE = "out-of-service"


@dataclass(frozen=True)
class DetachRules:
    """``max_wait`` seconds (``maxWaitForUnmountDuration``); ``force_on_timeout`` is not ``--disable-force-detach-on-timeout``."""

    max_wait: float = 360.0
    force_on_timeout: bool = True


def detachment(*, mounted: bool, waited: float, node: Node | None, rules: DetachRules) -> Detachment | None:
    """Whether a volume is detached now; None while its node may still use it.

    ``mounted``: the node says that it uses the volume, or last said so; ``waited``: seconds since no pod there wants it;
    ``node`` is None if there is no such node. A node that is out of service need not be unready.
    """
    ready = node is not None and node.ready
    timeout = waited > rules.max_wait and rules.force_on_timeout
    out_of_service = node is not None and node.out_of_service
    if mounted and not out_of_service and (ready or not timeout):
        return None
    if not mounted:
        return Detachment.UNMOUNTED
    return Detachment.TIMEOUT if timeout else Detachment.OUT_OF_SERVICE
