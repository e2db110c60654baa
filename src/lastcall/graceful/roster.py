"""Which pods a shutdown knows, and how far it has come with each."""

from collections.abc import Iterable, Sequence

from lastcall.graceful.phases import index_for
from lastcall.model.pods import priority
from lastcall.model.shutdown import PhasePlan, Shutdown
from lastcall.ports import LivePod


class Roster:
    """Pods by uid: waiting, open (their end has begun) or done. ``before`` is what an earlier life had done."""

    def __init__(self, plan: Sequence[PhasePlan], before: Shutdown | None) -> None:
        self._plan = tuple(plan)
        self._pods: dict[str, LivePod] = {}
        self._phases: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._ended: set[str] = set()
        self._sandboxes: dict[str, str] = {}
        self._again: set[str] = set()
        self._done = {pod.uid for pod in before.pods if pod.outcome} if before else set[str]()

    def remember(self, found: Iterable[LivePod]) -> None:
        """The pods that run now. Who has ended by itself is not waited for any more."""
        going = {uid: live for uid, live in self._pods.items() if uid in self._open}
        self._pods = going | {live.pod.metadata.uid: live for live in found if not live.pod.finished}
        self._phases = {uid: index_for(self._plan, priority(live.pod)) for uid, live in self._pods.items()}

    def waiting(self, index: int) -> list[LivePod]:
        """Pods of this phase or, if they were found late, of one before it, whose end has not begun; by name."""
        mine = (
            live
            for uid, live in self._pods.items()
            if uid not in self._open and not self._done_with(live) and self._phases[uid] <= index
        )
        return sorted(mine, key=lambda live: live.pod.key)

    def running(self, uid: str) -> LivePod | None:
        """The pod, if it ran when last looked at."""
        return self._pods.get(uid)

    def own_containers(self, waiting: Iterable[LivePod]) -> int:
        """How many kills a phase keeps time for: pods that a kubelet has made anew since their end take none of it."""
        return sum(len(live.containers) for live in waiting if live.pod.metadata.uid not in self._done)

    def coming(self, index: int) -> list[PhasePlan]:
        """The phase ``index`` and those after it that have pods."""
        busy = set(self._phases.values())
        return [phase for i, phase in enumerate(self._plan) if i == index or (i > index and i in busy)]

    def begin(self, uid: str) -> None:
        """A pod's end begins."""
        self._open[uid] = None
        self._ended.discard(uid)
        if uid in self._done:
            self._again.add(uid)
        if uid in self._pods:
            self._sandboxes[uid] = self._pods[uid].sandbox

    def confirm(self, uid: str) -> None:
        """Its containers have ended; what is left is its sandbox and its last status."""
        self._ended.add(uid)

    def confirmed(self, uid: str) -> bool:
        """Whether its containers are known to have ended."""
        return uid in self._ended

    def end(self, uid: str) -> None:
        """A pod has ended, or is given up."""
        self._open.pop(uid, None)
        self._done.add(uid)

    def _done_with(self, live: LivePod) -> bool:
        """One that runs in another sandbox than the one that has ended was made anew before the kubelet was stopped.

        It comes back once: who makes it anew again is a kubelet that is not stopped, and there is no end to that.
        """
        uid = live.pod.metadata.uid
        same = self._sandboxes.get(uid, live.sandbox) == live.sandbox
        return uid in self._done and (same or uid in self._again)

    @property
    def open(self) -> list[str]:
        """The uids of the pods whose end has begun and not come, in the order in which it began."""
        return list(self._open)
