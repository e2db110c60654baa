"""Everything that is known of a drain when its next steps are decided (pure)."""

from collections.abc import Mapping

import msgspec

from lastcall.drain.decisions.pod_progress import PodProgress, SeenPod, SeenRoom
from lastcall.drain.decisions.steps import NodeOutcome
from lastcall.model.base import Facts
from lastcall.model.drain_limits import DrainLimits
from lastcall.model.drain_settings import DrainSettings


class NodeProgress(Facts, frozen=True):
    """A node of the drain. ``trouble`` is why it cannot be drained any more, "" if it can."""

    name: str
    is_cordoned: bool = False
    """Marked and cordoned by this run."""
    trouble: str = ""
    outcome: NodeOutcome | None = None


class DrainCourse(Facts, frozen=True):
    """A drain so far. Times are of the monotonic clock.

    ``pods`` None: they are not chosen yet. ``seen`` has the pods that the watch shows on their nodes, by uid.
    ``asked`` are the uids for which a request is under way. ``deadline`` is the end of the time; None for no end.
    """

    settings: DrainSettings
    limits: DrainLimits
    nodes: tuple[NodeProgress, ...]
    is_owned: bool = False
    is_sure: bool = True
    """Nobody else can have taken the nodes, and it is known how they are; otherwise no pod is asked for."""
    pods: tuple[PodProgress, ...] | None = None
    seen: Mapping[str, SeenPod] = msgspec.field(default_factory=dict)
    rooms: Mapping[str, SeenRoom] = msgspec.field(default_factory=dict)
    """What is known of the budgets of refused pods, by uid; one that is missing is not known."""
    asked: frozenset[str] = frozenset()
    deadline: float | None = None
    watched_since: float | None = None
    """When the watch began, that tells which pods there are."""
    spent: float = 0.0
    """Seconds of the time that earlier runs have used up."""

    def node(self, name: str) -> NodeProgress:
        """One of the nodes."""
        return next(one for one in self.nodes if one.name == name)

    def is_here(self, pod: PodProgress) -> bool:
        """Whether the pod still is on its node."""
        return not pod.is_gone and pod.target.uid in self.seen

    def is_settled(self, pod: PodProgress) -> bool:
        """Whether nothing is left to do for the pod: it is gone, or given up."""
        return bool(pod.failure) or not self.is_here(pod)
