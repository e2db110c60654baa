"""The pods that a shutdown knows, and each pod's progress."""

from collections import Counter
from collections.abc import Iterable, Sequence

from lastcall.graceful.planning.phase_assignment import index_for
from lastcall.graceful.planning.service_order import needs
from lastcall.graceful.shutdown.resumption import is_recreated
from lastcall.model.own_pods import serves_other_pods
from lastcall.model.pods import pod_priority
from lastcall.model.shutdown import PhasePlan, PodOutcome, ShutdownRecord
from lastcall.ports.node import PrioritySource, RunningPod

MOST_RECREATIONS = 3
"""How often a pod that the kubelet has recreated is terminated again."""


class Roster:
    """Pods by uid: waiting, open (termination has begun) or done. ``before`` is the record of an earlier process."""

    def __init__(self, plan: Sequence[PhasePlan], before: ShutdownRecord | None) -> None:
        self._plan = tuple(plan)
        self._pods: dict[str, RunningPod] = {}
        self._phases: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._ended: set[str] = set()
        self._left: set[str] = set()
        self._held: set[str] = set()
        self._sandboxes: dict[str, str] = {}
        self._runs: dict[str, set[str]] = {}
        """The ids of the containers that were terminated, by the uid of their pod."""
        self._recreations: Counter[str] = Counter()
        self._done = {pod.uid for pod in before.pods if pod.outcome} if before else set[str]()
        self._earlier = {pod.uid: pod for pod in before.pods if pod.ended is not None} if before else {}

    def update(self, found: Iterable[RunningPod]) -> None:
        """Takes over the list of running pods. A waiting pod that ended by itself is dropped."""
        going = {uid: live for uid, live in self._pods.items() if uid in self._open}
        self._pods = going | {live.pod.metadata.uid: live for live in found if not live.pod.is_finished}
        self._phases = {uid: index_for(self._plan, pod_priority(live.pod)) for uid, live in self._pods.items()}

    def waiting_pods(self, index: int) -> list[RunningPod]:
        """The pods whose termination has not begun, of this phase or, if found late, of an earlier one; by name."""
        mine = (
            live
            for uid, live in self._pods.items()
            if uid not in self._open and not self._is_done(live) and self._phases[uid] <= index
        )
        return sorted(mine, key=lambda live: live.pod.key)

    @property
    def may_serve_sandboxes(self) -> bool:
        """Whether a pod to which nothing has been done may be needed to tear down the sandboxes of ended pods.

        A pod whose spec is not known counts as one.
        """
        return any(
            _may_serve(live)
            for uid, live in self._pods.items()
            if uid in self._held or (uid not in self._open and not self._is_done(live))
        )

    def users(self, uid: str) -> list[str]:
        """The pods under way, by namespace and name, that need this one (``service_order.needs``) and have not left."""
        service = self._pods[uid].pod
        others = (self._pods[other].pod for other in self._open if other != uid and other not in self._left)
        return sorted(pod.key for pod in others if needs(pod, service))

    @property
    def may_lose_sandbox_servers(self) -> bool:
        """The same of pods whose containers are about to end: a teardown that needs them has to begin now."""
        return any(_may_serve(self._pods[uid]) for uid in self._open if uid in self._pods and uid not in self._ended)

    @property
    def has_pods_without_spec(self) -> bool:
        """Whether no source has said the priority of a pod whose termination has not begun."""
        return any(
            live.priority_source is PrioritySource.DEFAULT and live.pod.spec.priority is None
            for uid, live in self._pods.items()
            if uid not in self._open and not self._is_done(live)
        )

    @property
    def namespaces(self) -> set[str]:
        """The namespaces of all known pods."""
        return {live.pod.metadata.namespace for live in self._pods.values()}

    def running_pod(self, uid: str) -> RunningPod | None:
        """The pod, if it ran at the last update."""
        return self._pods.get(uid)

    def count_kills(self, waiting: Iterable[RunningPod]) -> int:
        """Containers that may need SIGKILL time in this phase, without pods that the kubelet recreated."""
        return sum(len(live.containers) for live in waiting if live.pod.metadata.uid not in self._done)

    def remaining_phases(self, index: int) -> list[PhasePlan]:
        """The phase ``index``, and the later phases that have pods."""
        busy = set(self._phases.values())
        return [phase for i, phase in enumerate(self._plan) if i == index or (i > index and i in busy)]

    def mark_begun(self, uid: str) -> None:
        """Marks that the pod's termination has begun."""
        self._open[uid] = None
        self._ended.discard(uid)
        self._left.discard(uid)
        if uid in self._done:
            self._recreations[uid] += 1
        if uid in self._pods:
            self._sandboxes[uid] = self._pods[uid].sandbox
            self._runs.setdefault(uid, set()).update(self._pods[uid].containers.values())

    def mark_containers_ended(self, uid: str, runs: Iterable[str] = ()) -> None:
        """Marks that its containers have ended, also those with the ids ``runs``; its sandbox and its last status remain."""
        self._ended.add(uid)
        self._runs.setdefault(uid, set()).update(runs)

    def mark_left(self, uid: str) -> None:
        """Marks that the pod needs no other any more: its containers have ended, and its sandbox is not waited for."""
        self._left.add(uid)

    def mark_held(self, uid: str, *, held: bool) -> None:
        """Marks that the termination of a pod waits for its users, or does so no longer."""
        (self._held.add if held else self._held.discard)(uid)

    def have_containers_ended(self, uid: str) -> bool:
        """Whether its containers are known to have ended."""
        return uid in self._ended

    def mark_done(self, uid: str) -> None:
        """Marks that the pod has ended or was given up."""
        self._open.pop(uid, None)
        self._done.add(uid)

    def _is_done(self, live: RunningPod) -> bool:
        """Whether the pod is done. One that runs in another sandbox, or another container, was recreated by a kubelet.

        Of a pod that ended under an earlier process the containers tell it: that one's sandbox is not recorded.

        A recreated pod is terminated again, up to ``MOST_RECREATIONS`` times: with a kubelet that cannot be stopped the
        phase would never end.
        """
        uid = live.pod.metadata.uid
        earlier = self._earlier.get(uid)
        if uid in self._sandboxes or earlier is None:
            known = self._runs.get(uid)
            same = self._sandboxes.get(uid, live.sandbox) == live.sandbox
            same = same and (known is None or known.issuperset(live.containers.values()))
        else:
            same = earlier.outcome is PodOutcome.UNCONFIRMED or not is_recreated(earlier, live)
        return uid in self._done and (same or self._recreations[uid] >= MOST_RECREATIONS)

    @property
    def open_uids(self) -> list[str]:
        """The uids of the pods whose termination has begun and not finished, in the order in which it began."""
        return list(self._open)


def _may_serve(live: RunningPod) -> bool:
    return not live.is_spec_known or serves_other_pods(live.pod)
