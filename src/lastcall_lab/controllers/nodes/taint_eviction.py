"""Deletes pods that do not tolerate a NoExecute taint (``k8s.io/kubernetes/pkg/controller/tainteviction``).

The toleration time starts when this controller sees the taint, not when the taint was added; after a restart of the
controller it starts again. PodDisruptionBudgets are ignored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall.failover.upstream.pod_disruption import EVICTED
from lastcall.model.tolerations import FOR_EVER, NO_EXECUTE, seconds_tolerated
from lastcall_lab.controllers.framework.actions import Action, Decision, DeleteObject, RecordEvent
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import pod_conditions, pods, taints


@dataclass(frozen=True)
class _EvictionTimer:
    """When to delete a pod."""

    uid: str
    at: float


class TaintEvictionController:
    """Reconciles a pod when it or its node has changed. Remembers which pods to delete, and when."""

    name = "taint-eviction-controller"
    resources: Sequence[str] = ("nodes", "pods")

    def __init__(self) -> None:
        self._timers: dict[ObjectRef, _EvictionTimer] = {}

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The pod, or the node's pods, that NoExecute taints affect now or did when their timer started.

        A heartbeat or a new pod status affects no other pod. Kubernetes does the same: its event handlers compare
        taints, tolerations and the pod's node (``NodeUpdated``, ``PodUpdated``).
        """
        node = obj["metadata"]["name"] if resource == "nodes" else obj["spec"].get("nodeName")
        evicts = _has_no_execute_taint(view.get("nodes", "", node))
        if not node or not (evicts or self._timers):
            return []
        found = [ref_of("pods", pod) for pod in ([obj] if resource == "pods" else view.on_node(node))]
        return found if evicts else [key for key in found if key in self._timers]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """The deletion, at once or when the toleration time has passed.

        Later changes neither extend nor shorten a running timer, unless the pod may now stay for ever or must go at
        once.
        """
        pod, timer = view.get(*key), self._timers.get(key)
        if timer and (pod is None or pod["metadata"]["uid"] != timer.uid):
            return Decision(self._cancel_eviction(key), 0.0)
        if pod is None or _is_evicted(pod):
            self._timers.pop(key, None)
            return Decision()
        node = view.get("nodes", "", pod["spec"].get("nodeName", ""))
        if node is None:
            return self._schedule_eviction(key, pod, timer, now) if timer else Decision()
        seconds = seconds_tolerated(taints.taints_of(node), taints.tolerations_of(pod))
        if seconds == FOR_EVER:
            return Decision(self._cancel_eviction(key))
        if not seconds:
            return Decision((*self._cancel_eviction(key), *_evict_actions(key, pod, now)))
        timer = self._timers.setdefault(key, _EvictionTimer(pod["metadata"]["uid"], now + seconds))
        return self._schedule_eviction(key, pod, timer, now)

    def _schedule_eviction(self, key: ObjectRef, pod: Object, timer: _EvictionTimer, now: float) -> Decision:
        if now < timer.at:
            return Decision(again_in=timer.at - now)
        return Decision(tuple(_evict_actions(key, pod, now)))

    def _cancel_eviction(self, key: ObjectRef) -> tuple[Action, ...]:
        timer = self._timers.pop(key, None)
        return (_eviction_event(key, timer.uid, "Cancelling deletion of"),) if timer else ()


def _has_no_execute_taint(node: Object | None) -> bool:
    """Whether a node has NoExecute taints; a deleted node evicts no pod."""
    return node is not None and any(taint.effect == NO_EXECUTE for taint in taints.taints_of(node))


def _evict_actions(key: ObjectRef, pod: Object, now: float) -> Iterator[Action]:
    yield _eviction_event(key, pod["metadata"]["uid"], "Marking for deletion")
    yield from pod_conditions.conditions_patch(pod, pod_conditions.disruption_condition(pod, *EVICTED, now))
    yield DeleteObject(key, uid=pod["metadata"]["uid"])


def _is_evicted(pod: Object) -> bool:
    """Whether this controller has already deleted the pod."""
    said = pods.condition_of(pod, "DisruptionTarget").get("reason") == EVICTED.reason
    return said and bool(pod["metadata"].get("deletionTimestamp"))


def _eviction_event(key: ObjectRef, uid: str, what: str) -> RecordEvent:
    return RecordEvent(key, uid, "Pod", "v1", "TaintManagerEviction", f"{what} Pod {key.namespace}/{key.name}")
