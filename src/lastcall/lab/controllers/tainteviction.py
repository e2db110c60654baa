"""Pods that do not tolerate a NoExecute taint of their node are deleted (``k8s.io/kubernetes/pkg/controller/tainteviction``).

The time that a pod tolerates begins when this controller sees the taint, not when the taint was made: after a restart of
the controller it begins anew. PodDisruptionBudgets are not asked.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall.failover.upstream.marks import EVICTED
from lastcall.lab.controllers import pod_conditions, pods, taints
from lastcall.lab.controllers.actions import Action, Decision, Delete, Tell
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.model.tolerations import FOR_EVER, NO_EXECUTE, seconds_tolerated


@dataclass(frozen=True)
class _Timer:
    """When a pod is to go."""

    uid: str
    at: float


class TaintEviction:
    """Looks at a pod when it, or its node, has changed. It remembers which pods are to go, and when."""

    name = "taint-eviction-controller"
    resources: Sequence[str] = ("nodes", "pods")

    def __init__(self) -> None:
        self._timers: dict[Ref, _Timer] = {}

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """The pod, or the pods of a node, that NoExecute taints concern, or did when their time began to run.

        A heartbeat or a pod's new status concerns none elsewhere: nor does it in Kubernetes, whose event handlers
        compare taints, tolerations and the pod's node (``NodeUpdated``, ``PodUpdated``).
        """
        node = obj["metadata"]["name"] if resource == "nodes" else obj["spec"].get("nodeName")
        evicts = _evicts(view.get("nodes", "", node))
        if not node or not (evicts or self._timers):
            return []
        found = [ref("pods", pod) for pod in ([obj] if resource == "pods" else view.on_node(node))]
        return found if evicts else [key for key in found if key in self._timers]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """The deletion, at once or when the time that is tolerated has passed.

        A time that runs is neither made longer nor shorter by what changes later, unless the pod may now stay for ever
        or must go at once.
        """
        pod, timer = view.get(*key), self._timers.get(key)
        if timer and (pod is None or pod["metadata"]["uid"] != timer.uid):
            return Decision(self._cancelled(key), 0.0)
        if pod is None or _done(pod):
            self._timers.pop(key, None)
            return Decision()
        node = view.get("nodes", "", pod["spec"].get("nodeName", ""))
        if node is None:
            return self._wait(key, pod, timer, now) if timer else Decision()
        seconds = seconds_tolerated(taints.taints_of(node), taints.tolerations_of(pod))
        if seconds == FOR_EVER:
            return Decision(self._cancelled(key))
        if not seconds:
            return Decision((*self._cancelled(key), *_deletion(key, pod, now)))
        timer = self._timers.setdefault(key, _Timer(pod["metadata"]["uid"], now + seconds))
        return self._wait(key, pod, timer, now)

    def _wait(self, key: Ref, pod: Object, timer: _Timer, now: float) -> Decision:
        if now < timer.at:
            return Decision(again_in=timer.at - now)
        return Decision(tuple(_deletion(key, pod, now)))

    def _cancelled(self, key: Ref) -> tuple[Action, ...]:
        timer = self._timers.pop(key, None)
        return (_told(key, timer.uid, "Cancelling deletion of"),) if timer else ()


def _evicts(node: Object | None) -> bool:
    """Whether some pods may not stay on a node; one that is gone sends nobody away."""
    return node is not None and any(taint.effect == NO_EXECUTE for taint in taints.taints_of(node))


def _deletion(key: Ref, pod: Object, now: float) -> Iterator[Action]:
    yield _told(key, pod["metadata"]["uid"], "Marking for deletion")
    yield from pod_conditions.patch(pod, pod_conditions.disruption(pod, *EVICTED, now))
    yield Delete(key, uid=pod["metadata"]["uid"])


def _done(pod: Object) -> bool:
    """Whether this controller has deleted it."""
    said = pods.condition(pod, "DisruptionTarget").get("reason") == EVICTED.reason
    return said and bool(pod["metadata"].get("deletionTimestamp"))


def _told(key: Ref, uid: str, what: str) -> Tell:
    return Tell(key, uid, "Pod", "v1", "TaintManagerEviction", f"{what} Pod {key.namespace}/{key.name}")
