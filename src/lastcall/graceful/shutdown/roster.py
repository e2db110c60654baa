"""Which pods a shutdown knows, and how far it has come with each."""

from collections.abc import Iterable, Sequence

from lastcall.graceful.planning.phase_assignment import index_for
from lastcall.model.pods import pod_priority
from lastcall.model.shutdown import PhasePlan, ShutdownRecord
from lastcall.ports.node import RunningPod


class Roster:
    """Pods by uid: waiting, open (their end has begun) or done. ``before`` is what an earlier life had done."""

    def __init__(self, plan: Sequence[PhasePlan], before: ShutdownRecord | None) -> None:
        self._plan = tuple(plan)
        self._pods: dict[str, RunningPod] = {}
        self._phases: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._ended: set[str] = set()
        self._sandboxes: dict[str, str] = {}
        self._again: set[str] = set()
        self._done = {pod.uid for pod in before.pods if pod.outcome} if before else set[str]()

    def update(self, found: Iterable[RunningPod]) -> None:
        """The pods that run now. Who has ended by itself is not waited for any more."""
        going = {uid: live for uid, live in self._pods.items() if uid in self._open}
        self._pods = going | {live.pod.metadata.uid: live for live in found if not live.pod.is_finished}
        self._phases = {uid: index_for(self._plan, pod_priority(live.pod)) for uid, live in self._pods.items()}

    def waiting_pods(self, index: int) -> list[RunningPod]:
        """Pods of this phase or, if they were found late, of one before it, whose end has not begun; by name."""
        mine = (
            live
            for uid, live in self._pods.items()
            if uid not in self._open and not self._is_done(live) and self._phases[uid] <= index
        )
        return sorted(mine, key=lambda live: live.pod.key)

    def running_pod(self, uid: str) -> RunningPod | None:
        """The pod, if it ran when last looked at."""
        return self._pods.get(uid)

    def count_kills(self, waiting: Iterable[RunningPod]) -> int:
        """How many kills a phase keeps time for: pods that a kubelet has made anew since their end take none of it."""
        return sum(len(live.containers) for live in waiting if live.pod.metadata.uid not in self._done)

    def remaining_phases(self, index: int) -> list[PhasePlan]:
        """The phase ``index`` and those after it that have pods."""
        busy = set(self._phases.values())
        return [phase for i, phase in enumerate(self._plan) if i == index or (i > index and i in busy)]

    def mark_begun(self, uid: str) -> None:
        """A pod's end begins."""
        self._open[uid] = None
        self._ended.discard(uid)
        if uid in self._done:
            self._again.add(uid)
        if uid in self._pods:
            self._sandboxes[uid] = self._pods[uid].sandbox

    def mark_containers_ended(self, uid: str) -> None:
        """Its containers have ended; what is left is its sandbox and its last status."""
        self._ended.add(uid)

    def have_containers_ended(self, uid: str) -> bool:
        """Whether its containers are known to have ended."""
        return uid in self._ended

    def mark_done(self, uid: str) -> None:
        """A pod has ended, or is given up."""
        self._open.pop(uid, None)
        self._done.add(uid)

    def _is_done(self, live: RunningPod) -> bool:
        """One that runs in another sandbox than the one that has ended was made anew before the kubelet was stopped.

        It comes back once: who makes it anew again is a kubelet that is not stopped, and there is no end to that.
        """
        uid = live.pod.metadata.uid
        same = self._sandboxes.get(uid, live.sandbox) == live.sandbox
        return uid in self._done and (same or uid in self._again)

    @property
    def open_uids(self) -> list[str]:
        """The uids of the pods whose end has begun and not come, in the order in which it began."""
        return list(self._open)
