"""The steps of a drain (pure). Each is safe to interrupt after, and to take again by another run."""

from enum import Enum

from lastcall.drain.decisions.pod_progress import PodTarget
from lastcall.model.base import Facts


class NodeOutcome(Enum):
    """How the drain of a node has ended."""

    DRAINED = "drained"
    FAILED = "failed"


class TakeOwnership(Facts, frozen=True):
    """Take the Leases of all nodes, or none."""

    nodes: tuple[str, ...]


class CordonNode(Facts, frozen=True):
    """Mark the Node, and cordon it if it is schedulable."""

    node: str


class EvictPod(Facts, frozen=True):
    """Ask for the eviction of exactly this pod."""

    target: PodTarget


class DeletePod(Facts, frozen=True):
    """Delete exactly this pod. ``grace`` None: its own; ``forced``: the policy at the end of the time does it."""

    target: PodTarget
    grace: int | None = None
    forced: bool = False


class FailPod(Facts, frozen=True):
    """Give a pod up."""

    target: PodTarget
    why: str


class SkipPod(Facts, frozen=True):
    """Wait no more for a pod that was deleted long ago (kubectl's ``--skip-wait-for-delete-timeout``)."""

    target: PodTarget
    why: str


class FinishNode(Facts, frozen=True):
    """Write on the Node how its drain has ended."""

    node: str
    outcome: NodeOutcome
    why: str = ""


Step = TakeOwnership | CordonNode | EvictPod | DeletePod | FailPod | SkipPod | FinishNode


class DrainDecision(Facts, frozen=True):
    """The steps to take now, in this order. ``wake_at`` is when to decide again if nothing happens; None: never.

    ``is_over``: nothing is left to do or to wait for.
    """

    steps: tuple[Step, ...] = ()
    wake_at: float | None = None
    is_over: bool = False
