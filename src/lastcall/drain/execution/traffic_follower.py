"""Tells the watch of traffic what becomes of the pods of a drain, and passes everything on to whoever looks on."""

from lastcall.drain.decisions.drain_course import DrainCourse
from lastcall.drain.decisions.pod_progress import PodTarget
from lastcall.drain.decisions.steps import NodeOutcome
from lastcall.drain.execution.drain_observer import DrainObserver
from lastcall.drain.traffic.traffic_watch import TrafficWatch


class TrafficFollower:
    """``DrainObserver`` in front of another one."""

    def __init__(self, watch: TrafficWatch, observer: DrainObserver) -> None:
        self._watch = watch
        self._observer = observer

    def warn(self, text: str) -> None:
        """Passed on."""
        self._observer.warn(text)

    def tell_cordoned(self, node: str, *, already: bool) -> None:
        """Passed on."""
        self._observer.tell_cordoned(node, already=already)

    def tell_uncordoned(self, node: str) -> None:
        """Passed on."""
        self._observer.tell_uncordoned(node)

    def tell_asked(self, target: PodTarget, *, evicts: bool) -> None:
        """Passed on."""
        self._observer.tell_asked(target, evicts=evicts)

    def tell_refused(self, target: PodTarget, why: str, seconds: float) -> None:
        """Passed on."""
        self._observer.tell_refused(target, why, seconds)

    def tell_gone(self, target: PodTarget, *, evicts: bool) -> None:
        """The pod has no connections any more; its address may still be in slices and proxies."""
        self._watch.mark_gone(target.uid)
        self._observer.tell_gone(target, evicts=evicts)

    def tell_failed(self, target: PodTarget, why: str) -> None:
        """The pod stays."""
        self._watch.forget(target.uid)
        self._observer.tell_failed(target, why)

    def tell_skipped(self, target: PodTarget, why: str) -> None:
        """Nobody waits for the pod, nor for its traffic."""
        self._watch.forget(target.uid)
        self._observer.tell_skipped(target, why)

    def tell_finished(self, node: str, outcome: NodeOutcome, why: str) -> None:
        """Passed on."""
        self._observer.tell_finished(node, outcome, why)

    def show(self, course: DrainCourse, now: float) -> None:
        """Pods whose eviction was accepted begin to leave."""
        for pod in course.pods or ():
            seen = course.seen.get(pod.target.uid)
            if pod.accepted_at is not None or (seen and seen.terminating_since is not None):
                self._watch.mark_evicted(pod.target.uid)
        self._observer.show(course, now)
