"""What a drain tells whoever looks on."""

from typing import Protocol

from lastcall.drain.decisions.drain_course import DrainCourse
from lastcall.drain.decisions.pod_progress import PodTarget
from lastcall.drain.decisions.steps import NodeOutcome


class DrainObserver(Protocol):
    """Is called in the order in which things happen; must not raise, and must not wait."""

    def warn(self, text: str) -> None:
        """Something that a person should know."""
        ...

    def tell_cordoned(self, node: str, *, already: bool) -> None:
        """The node is cordoned; ``already``: it was before."""
        ...

    def tell_uncordoned(self, node: str) -> None:
        """The drain has taken its own cordon back."""
        ...

    def tell_asked(self, target: PodTarget, *, evicts: bool) -> None:
        """The eviction or deletion of a pod is asked for."""
        ...

    def tell_refused(self, target: PodTarget, why: str, seconds: float) -> None:
        """It was refused, and is asked for again after so many seconds."""
        ...

    def tell_gone(self, target: PodTarget, *, evicts: bool) -> None:
        """The pod is gone."""
        ...

    def tell_failed(self, target: PodTarget, why: str) -> None:
        """The pod is given up."""
        ...

    def tell_skipped(self, target: PodTarget, why: str) -> None:
        """The pod is not waited for."""
        ...

    def tell_finished(self, node: str, outcome: NodeOutcome, why: str) -> None:
        """The drain of a node has ended."""
        ...

    def show(self, course: DrainCourse, now: float) -> None:
        """How everything stands, after each round; ``now`` is of the monotonic clock."""
        ...
