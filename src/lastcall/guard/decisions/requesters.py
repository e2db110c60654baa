"""Who asks for the removal of a pod, and when he counts as gone (pure)."""

from datetime import datetime, timedelta

from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState, RequestedRemoval

ABANDONED_SECONDS = 1200.0
"""Silence after which a request counts as given up. The controllers of Kubernetes ask again after 1,000 seconds at most."""

SHUTDOWN_SILENCE = 60.0
"""The same for the shutdown of a node, which counts as repeated as long as it is recorded on the Node."""

_WORKLOAD_CONTROLLERS = frozenset(
    f"system:serviceaccount:kube-system:{one}" for one in ("statefulset-controller", "replicaset-controller")
)


_TAINT_EVICTION = "system:serviceaccount:kube-system:node-controller"


def is_taint_eviction(username: str) -> bool:
    """Whether it is the user as whom kube-controller-manager evicts from nodes with ``NoExecute`` taints.

    Of the controllers with this user no other one deletes pods (``cmd/kube-controller-manager/app/core.go``).
    """
    return username == _TAINT_EVICTION


def is_workload_controller(username: str) -> bool:
    """Whether it is the controller of a kind whose wish can be read again: a StatefulSet or a ReplicaSet."""
    return username in _WORKLOAD_CONTROLLERS


def abandoned_at(held: HeldPod, policy: GuardPolicy) -> datetime | None:
    """When the request counts as given up, unless it is repeated; None while that cannot be said.

    Who evicts asks again and again. Who deletes is not expected to ask again before the application is ready, or the
    policy's limit is over.
    """
    last = held.last_request_at or held.since
    if last is None:
        return None
    if held.request is RequestedRemoval.NODE_SHUTDOWN:
        return last + timedelta(seconds=SHUTDOWN_SILENCE)
    if held.request is not RequestedRemoval.EVICTION:
        if held.state is PreparationState.PREPARING:
            return None
        limit = timedelta(seconds=policy.spec.hold_limit_seconds or 0)
        last = max(last, held.ready_at or last, (held.since or last) + limit)
    return last + timedelta(seconds=ABANDONED_SECONDS)
