"""The scheduler: assigns pods to nodes (``k8s.io/kubernetes/pkg/scheduler``, default profile without preemption)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall_lab.controllers.framework.actions import Action, BindPod, Decision, PatchObject, RecordEvent
from lastcall_lab.controllers.framework.view import Object, ObjectRef, View, ref_of
from lastcall_lab.controllers.objects import pod_conditions, pods
from lastcall_lab.controllers.scheduling import fit_errors, pod_volumes
from lastcall_lab.controllers.scheduling.node_ranking import NodeRankings
from lastcall_lab.controllers.scheduling.pod_candidate import PodCandidate
from lastcall_lab.controllers.scheduling.scheduling_nodes import SchedulingNode
from lastcall_lab.controllers.volumes.volume_matching import (
    ATTACHMENTS,
    BOUND_BY_CONTROLLER,
    CLAIMS,
    CLASSES,
    SELECTED_NODE,
    VOLUMES,
    annotation_of,
    claim_reference,
    refers_to_claim,
)

_NAME = "default-scheduler"


@dataclass(frozen=True)
class _AssumedPod:
    """A pod whose binding is not visible in the view yet."""

    pod: Object
    node: str


class Scheduler:
    """Reconciles an unscheduled pod when it changes, and all waiting ones when anything else changes.

    It remembers pods whose binding is not visible yet, so that the next pod does not take their place, and waiting
    pods, so that those with higher priority come first.
    """

    name = "scheduler"
    resources: Sequence[str] = (
        "pods",
        "nodes",
        "namespaces",
        CLAIMS,
        VOLUMES,
        CLASSES,
        ATTACHMENTS,
        "csinodes.storage.k8s.io",
    )

    def __init__(self) -> None:
        self._rankings = NodeRankings()
        self._assumed: dict[ObjectRef, _AssumedPod] = {}
        self._waiting: dict[ObjectRef, tuple[int, str]] = {}

    def affected_keys(self, resource: str, obj: Object, view: View) -> Iterable[ObjectRef]:
        """An unscheduled pod. A pod that frees resources, and any other change, can help all waiting pods."""
        if resource != "pods":
            return self._waiting_in_order()
        key = ref_of("pods", obj)
        self._drop_assumed(key, view)
        if view.get(*key) is None or pods.pod_phase(obj) in pods.FINISHED:
            return [key, *self._waiting_in_order()]
        return [] if obj["spec"].get("nodeName") else [key]

    def decide(self, key: ObjectRef, view: View, now: float) -> Decision:
        """A binding, the volumes to bind first, or the reason why no node fits."""
        before = self._assumed.pop(key, None)
        self._waiting.pop(key, None)
        pod = view.get(*key)
        if pod is None or not _needs_node(pod):
            return Decision()
        places = self._rankings.rooms.update_nodes(view, self._assumed_pods())
        try:
            candidate = PodCandidate(pod, places, view, pod_volumes.pod_volumes(pod, view))
        except pod_volumes.PodUnschedulable as why:
            return self._report_unschedulable(
                key, pod, fit_errors.hopeless_message(len(places), str(why)) if places else fit_errors.NO_NODES, now
            )
        ranking = self._rankings.ranking_for(candidate.likeness)
        ranking.renew(candidate.judge_node)
        room = ranking.best_node(candidate.count_kin, kept=before.node if before else "")
        if room is None:
            return self._report_unschedulable(
                key, pod, fit_errors.unfit_message(pod, ranking.rejections) if places else fit_errors.NO_NODES, now
            )
        return self._bind_pod(key, candidate, room)

    def _bind_pod(self, key: ObjectRef, candidate: PodCandidate, room: SchedulingNode) -> Decision:
        pod, metadata = candidate.pod, candidate.pod["metadata"]
        self._assumed[key] = _AssumedPod(pod, room.name)
        if candidate.volumes.unbound:
            self._wait_for_change(key, pod)
            return Decision(tuple(_bind_volumes(candidate, room)))
        said = f"Successfully assigned {key.namespace}/{key.name} to {room.name}"
        event = RecordEvent(key, metadata["uid"], "Pod", "v1", "Scheduled", said, source=_NAME)
        return Decision((BindPod(key, metadata["uid"], room.name, event),))

    def _report_unschedulable(self, key: ObjectRef, pod: Object, why: str, now: float) -> Decision:
        """Reports a reason only when it changes: its start matters to users, the number of attempts does not."""
        self._wait_for_change(key, pod)
        conditions = pod_conditions.changed_condition(pod, "PodScheduled", "False", "Unschedulable", why, now)
        if not conditions:
            return Decision()
        uid = pod["metadata"]["uid"]
        event = RecordEvent(key, uid, "Pod", "v1", "FailedScheduling", why, type="Warning", source=_NAME)
        return Decision((event, *pod_conditions.conditions_patch(pod, conditions)))

    def _wait_for_change(self, key: ObjectRef, pod: Object) -> None:
        self._waiting[key] = -(pod["spec"].get("priority") or 0), pod["metadata"]["creationTimestamp"]

    def _waiting_in_order(self) -> list[ObjectRef]:
        """The waiting pods by priority, then by age."""
        return sorted(self._waiting, key=lambda key: (self._waiting[key], key))

    def _drop_assumed(self, key: ObjectRef, view: View) -> None:
        """Drops assumed pods that are bound in the view, deleted, or replaced."""
        if assumed := self._assumed.get(key):
            now = view.get(*key)
            if now is None or now["metadata"]["uid"] != assumed.pod["metadata"]["uid"] or not _needs_node(now):
                del self._assumed[key]

    def _assumed_pods(self) -> list[tuple[Object, str]]:
        return [(assumed.pod, assumed.node) for assumed in self._assumed.values()]


def _needs_node(pod: Object) -> bool:
    """Whether the pod is unscheduled and schedulable."""
    spec = pod["spec"]
    mine = spec.get("schedulerName", _NAME) == _NAME and not spec.get("schedulingGates")
    return mine and not spec.get("nodeName") and pods.is_active(pod)


def _bind_volumes(candidate: PodCandidate, room: SchedulingNode) -> Iterator[Action]:
    """Starts the binding of the volumes; the pod is bound once its claims are."""
    plan = candidate.volumes.plan_volumes(room.node, candidate.view)
    assert plan is not None, "the filter has found one"
    own = {claim["metadata"]["name"]: claim for claim in candidate.volumes.unbound}
    for name, volume in plan.bind.items():
        if not refers_to_claim(volume, own[name]):
            metadata = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            body = {"metadata": metadata, "spec": {"claimRef": claim_reference(own[name])}}
            yield PatchObject(ref_of(VOLUMES, volume), body, revision=volume["metadata"]["resourceVersion"])
    for name in plan.provision:
        if annotation_of(own[name], SELECTED_NODE) != room.name:
            body = {"metadata": {"annotations": {SELECTED_NODE: room.name}}}
            yield PatchObject(ref_of(CLAIMS, own[name]), body, uid=own[name]["metadata"]["uid"])
