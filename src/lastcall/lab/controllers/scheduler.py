"""The scheduler: gives pods their nodes (``k8s.io/kubernetes/pkg/scheduler``, its default profile without preemption)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lastcall.lab.controllers import pod_conditions, pods
from lastcall.lab.controllers.actions import Action, Bind, Decision, Patch, Tell
from lastcall.lab.controllers.scheduling import volumes, words
from lastcall.lab.controllers.scheduling.choice import Candidate
from lastcall.lab.controllers.scheduling.ranking import Rankings
from lastcall.lab.controllers.scheduling.rooms import Room
from lastcall.lab.controllers.view import Object, Ref, View, ref
from lastcall.lab.controllers.volume_match import (
    ATTACHMENTS,
    BOUND_BY_CONTROLLER,
    CLAIMS,
    CLASSES,
    SELECTED_NODE,
    VOLUMES,
    annotation,
    reference,
    refers,
)

_NAME = "default-scheduler"


@dataclass(frozen=True)
class _Assumed:
    """A pod that is on its way to a node."""

    pod: Object
    node: str


class Scheduler:
    """Looks at a pod that has no node when it has changed, and at all that wait when something else has.

    It remembers which pods are on their way to a node, so that the next one does not take their place before the view
    shows them there, and which pods wait, so that the important ones are looked at first.
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
        self._rankings = Rankings()
        self._assumed: dict[Ref, _Assumed] = {}
        self._waiting: dict[Ref, tuple[int, str]] = {}

    def keys(self, resource: str, obj: Object, view: View) -> Iterable[Ref]:
        """A pod without a node; a pod that makes room, and everything else, may help those that wait."""
        if resource != "pods":
            return self._in_order()
        key = ref("pods", obj)
        self._arrived(key, view)
        if view.get(*key) is None or pods.phase(obj) in pods.FINISHED:
            return [key, *self._in_order()]
        return [] if obj["spec"].get("nodeName") else [key]

    def decide(self, key: Ref, view: View, now: float) -> Decision:
        """A binding; or the volumes that have to be there first; or why there is no node."""
        before = self._assumed.pop(key, None)
        self._waiting.pop(key, None)
        pod = view.get(*key)
        if pod is None or not _ours(pod):
            return Decision()
        places = self._rankings.rooms.look(view, self._on_their_way())
        try:
            candidate = Candidate(pod, places, view, volumes.wanted(pod, view))
        except volumes.Hopeless as why:
            return self._unfit(key, pod, words.hopeless(len(places), str(why)) if places else words.NO_NODES, now)
        ranking = self._rankings.of(candidate.likeness)
        ranking.renew(candidate.verdict)
        room = ranking.best(candidate.kin, kept=before.node if before else "")
        if room is None:
            return self._unfit(key, pod, words.unfit(pod, ranking.rejections) if places else words.NO_NODES, now)
        return self._place(key, candidate, room)

    def _place(self, key: Ref, candidate: Candidate, room: Room) -> Decision:
        pod, metadata = candidate.pod, candidate.pod["metadata"]
        self._assumed[key] = _Assumed(pod, room.name)
        if candidate.volumes.unbound:
            self._wait(key, pod)
            return Decision(tuple(_prepare(candidate, room)))
        said = f"Successfully assigned {key.namespace}/{key.name} to {room.name}"
        event = Tell(key, metadata["uid"], "Pod", "v1", "Scheduled", said, source=_NAME)
        return Decision((Bind(key, metadata["uid"], room.name, event),))

    def _unfit(self, key: Ref, pod: Object, why: str, now: float) -> Decision:
        """Told when it is another reason than before: people read when that began, and how often it was tried is noise."""
        self._wait(key, pod)
        conditions = pod_conditions.condition(pod, "PodScheduled", "False", "Unschedulable", why, now)
        if not conditions:
            return Decision()
        uid = pod["metadata"]["uid"]
        event = Tell(key, uid, "Pod", "v1", "FailedScheduling", why, type="Warning", source=_NAME)
        return Decision((event, *pod_conditions.patch(pod, conditions)))

    def _wait(self, key: Ref, pod: Object) -> None:
        self._waiting[key] = -(pod["spec"].get("priority") or 0), pod["metadata"]["creationTimestamp"]

    def _in_order(self) -> list[Ref]:
        """Those that wait: by priority, then by age."""
        return sorted(self._waiting, key=lambda key: (self._waiting[key], key))

    def _arrived(self, key: Ref, view: View) -> None:
        """A pod is not on its way any more when the view has it on its node, or it is gone, or another."""
        if assumed := self._assumed.get(key):
            now = view.get(*key)
            if now is None or now["metadata"]["uid"] != assumed.pod["metadata"]["uid"] or not _ours(now):
                del self._assumed[key]

    def _on_their_way(self) -> list[tuple[Object, str]]:
        return [(assumed.pod, assumed.node) for assumed in self._assumed.values()]


def _ours(pod: Object) -> bool:
    """Whether it needs a node, and may have one."""
    spec = pod["spec"]
    mine = spec.get("schedulerName", _NAME) == _NAME and not spec.get("schedulingGates")
    return mine and not spec.get("nodeName") and pods.active(pod)


def _prepare(candidate: Candidate, room: Room) -> Iterator[Action]:
    """What makes others get the volumes; the pod is bound when its claims are."""
    plan = candidate.volumes.plan(room.node, candidate.view)
    assert plan is not None, "the filter has found one"
    own = {claim["metadata"]["name"]: claim for claim in candidate.volumes.unbound}
    for name, volume in plan.bind.items():
        if not refers(volume, own[name]):
            metadata = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
            body = {"metadata": metadata, "spec": {"claimRef": reference(own[name])}}
            yield Patch(ref(VOLUMES, volume), body, revision=volume["metadata"]["resourceVersion"])
    for name in plan.provision:
        if annotation(own[name], SELECTED_NODE) != room.name:
            body = {"metadata": {"annotations": {SELECTED_NODE: room.name}}}
            yield Patch(ref(CLAIMS, own[name]), body, uid=own[name]["metadata"]["uid"])
