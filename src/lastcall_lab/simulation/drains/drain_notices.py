"""What a drain of a rehearsal tells, as lines of its report."""

from lastcall.drain.decisions.drain_course import DrainCourse
from lastcall.drain.decisions.pod_progress import PodTarget
from lastcall.drain.decisions.steps import NodeOutcome
from lastcall_lab.simulation.truth import Truth

_ENDS = {NodeOutcome.DRAINED: "drained by lastcall"}


class DrainNotices:
    """A ``DrainObserver``. A pod that is refused again and again is told of once."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._refused: set[str] = set()

    def warn(self, text: str) -> None:
        """Nothing: warnings are about what a person reads at a terminal."""

    def tell_cordoned(self, node: str, *, already: bool) -> None:
        """``DrainObserver.tell_cordoned``."""
        self._truth.record_notice(node, "lastcall drains it; it was cordoned" if already else "lastcall drains it")

    def tell_uncordoned(self, node: str) -> None:
        """``DrainObserver.tell_uncordoned``."""
        self._truth.record_notice(node, "lastcall takes its cordon back")

    def tell_asked(self, target: PodTarget, *, evicts: bool) -> None:
        """An eviction is what is expected; a deletion is told of."""
        if not evicts:
            self._truth.record_notice(target.node, f"{target.name} is deleted by lastcall, its time is over")

    def tell_refused(self, target: PodTarget, why: str, seconds: float) -> None:
        """``DrainObserver.tell_refused``."""
        if target.uid not in self._refused:
            self._refused.add(target.uid)
            self._truth.record_notice(target.node, f"{target.name} may not be evicted yet, and lastcall waits")

    def tell_gone(self, target: PodTarget, *, evicts: bool) -> None:
        """Nothing: the report tells of each pod that ends."""

    def tell_failed(self, target: PodTarget, why: str) -> None:
        """``DrainObserver.tell_failed``."""
        self._truth.record_notice(target.node, f"{target.name} is given up by lastcall: {why}")

    def tell_skipped(self, target: PodTarget, why: str) -> None:
        """``DrainObserver.tell_skipped``."""
        self._truth.record_notice(target.node, f"{target.name} is not waited for: {why}")

    def tell_finished(self, node: str, outcome: NodeOutcome, why: str) -> None:
        """``DrainObserver.tell_finished``."""
        self._truth.record_notice(node, _ENDS.get(outcome, f"not drained by lastcall: {why}"))

    def show(self, course: DrainCourse, now: float) -> None:
        """Nothing."""
