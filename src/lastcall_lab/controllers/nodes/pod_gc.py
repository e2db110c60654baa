"""Pod garbage collection: pods whose end no kubelet will confirm (``k8s.io/kubernetes/pkg/controller/podgc``).

``failover.upstream.verdict`` selects them. It runs every 20 seconds; a node must have been missing for 40 seconds
before its pods count as orphans.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall.failover.upstream import controller_manager_rules, pod_disruption
from lastcall.failover.upstream.controller_manager_rules import RemovalReason
from lastcall_lab.controllers.framework.actions import Action, Decision, DeleteObject
from lastcall_lab.controllers.framework.periodic_ticks import PeriodicTicks
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import pod_conditions, pods, taints

_FINISHED = ObjectRef("pods", "", "")
"""The key under which all finished pods are checked together."""


@dataclass(frozen=True, kw_only=True)
class PodGCSettings:
    """Seconds; the defaults are those of Kubernetes 1.36."""

    period: float = 20.0
    quarantine: float = 40.0
    """Seconds that a node must be missing before its pods are orphans."""
    finished: int = 12500
    """``--terminated-pod-gc-threshold``: the number of finished pods to keep; 0: all of them."""


class PodGarbageCollector:
    """Reconciles terminating pods and pods whose node is gone or back, at the tick after the change.

    It remembers since when a node is missing, and which pods have finished.
    """

    name = "podgc"
    resources: Sequence[str] = ("nodes", "pods")

    def __init__(self, settings: PodGCSettings | None = None) -> None:
        self._settings = settings or PodGCSettings()
        self._ticks = PeriodicTicks(self._settings.period)
        self._missing: dict[str, float] = {}
        self._noticed: dict[ObjectRef, int] = {}
        """Per pod, the tick before which it needed an action."""
        self._finished: set[ObjectRef] = set()
        """The finished pods."""

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """The pods that may need deletion now, or did before; finished ones only above the threshold.

        Kubernetes ignores changes of pods: it lists all of them at each tick (``gc``).
        """
        if resource == "nodes":
            node = obj["metadata"]["name"]
            moved = node in self._missing or view.get("nodes", "", node) is None
            return [ref_of("pods", pod) for pod in view.on_node(node)] if moved else []
        key = ref_of("pods", obj)
        self._count_finished(key, view)
        too_many = 0 < self._settings.finished < len(self._finished)
        return [*([key] if self._is_concerned(key, obj, view) else []), *([_FINISHED] if too_many else [])]

    def _count_finished(self, key: ObjectRef, view: View) -> None:
        pod = view.get(*key)
        if pod is not None and _has_finished(pod):
            self._finished.add(key)
        else:
            self._finished.discard(key)

    def _is_concerned(self, key: ObjectRef, pod: Object, view: View) -> bool:
        node = pod["spec"].get("nodeName", "")
        return key in self._noticed or node in self._missing or _is_suspicious(pod, view.get("nodes", "", node))

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """Phase Failed and a forced deletion, at the first tick after there is a reason."""
        if key == _FINISHED:
            return self._decide_finished(view, now)
        pod = view.get(*key)
        node = view.get("nodes", "", pod["spec"].get("nodeName", "")) if pod else None
        if node is not None:
            self._missing.pop(node["metadata"]["name"], None)
        if pod is None or not _is_suspicious(pod, node):
            self._noticed.pop(key, None)
            return Decision()
        number = self._ticks.tick_number(now)
        if self._noticed.setdefault(key, number) == number:
            return Decision(again_in=self._ticks.seconds_until_next(now))
        self._noticed[key] = number
        why = self._removal_reason(pod, node, now)
        return Decision(tuple(_removal_actions(pod, why, now)) if why else (), self._ticks.seconds_until_next(now))

    def _removal_reason(self, pod: Object, node: Object | None, now: float) -> RemovalReason | None:
        name = pod["spec"].get("nodeName", "")
        since = self._missing.setdefault(name, now) if name and node is None else now
        return controller_manager_rules.removal_reason(
            terminating=bool(pod["metadata"].get("deletionTimestamp")),
            bound=bool(name),
            node=taints.node_state(node),
            missed=now - since >= self._settings.quarantine,
        )

    def _decide_finished(self, view: View, now: float) -> Decision:
        """The oldest pods above the threshold; evicted pods go first (``gcTerminated``)."""
        number = self._ticks.tick_number(now)
        if self._noticed.setdefault(_FINISHED, number) == number:
            return Decision(again_in=self._ticks.seconds_until_next(now))
        del self._noticed[_FINISHED]
        finished = [pod for key in sorted(self._finished) if (pod := view.get(*key))]
        doomed = controller_manager_rules.surplus_pods(finished, self._settings.finished, _pod_age)
        return Decision(
            tuple(action for pod in doomed for action in _removal_actions(pod, RemovalReason.TERMINATED, now))
        )


def _is_suspicious(pod: Object, node: Object | None) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp")) or (bool(pod["spec"].get("nodeName")) and node is None)


def _removal_actions(pod: Object, why: RemovalReason, now: float) -> Iterator[Action]:
    """Writes the phase first, so that anything that watches the pod, or waits for its volumes, sees its end."""
    if mark := pod_disruption.pod_failure_patch(pods.pod_phase(pod), why):
        said = pod_conditions.disruption_condition(pod, *mark.disruption, now) if mark.disruption else []
        yield from pod_conditions.conditions_patch(pod, said, phase=mark.phase)
    yield DeleteObject(ref_of("pods", pod), uid=pod["metadata"]["uid"], grace=0)


def _has_finished(pod: Object) -> bool:
    return controller_manager_rules.is_finished(pods.pod_phase(pod) or "Pending")


def _pod_age(pod: Object) -> controller_manager_rules.RemovalOrder:
    metadata = pod["metadata"]
    return controller_manager_rules.removal_order(
        phase=pods.pod_phase(pod),
        reason=(pod.get("status") or {}).get("reason", ""),
        created=pods.unix_seconds(metadata["creationTimestamp"]),
        name=metadata["name"],
        namespace=metadata["namespace"],
    )
