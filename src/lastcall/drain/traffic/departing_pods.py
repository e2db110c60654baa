"""The pods whose traffic is watched, and what was seen of each."""

from dataclasses import dataclass, field
from typing import NamedTuple

from lastcall.drain.traffic.departure import DepartureStage, DepartureStep
from lastcall.model.slice_places import SlicePlace


class DepartingPod(NamedTuple):
    """A pod that is about to be evicted. ``terminates``: it is being deleted already, so nothing was seen before.

    ``balancers`` are its readiness gates that load balancers set.
    """

    uid: str
    namespace: str
    name: str
    node: str
    address: str
    terminates: bool = False
    balancers: tuple[str, ...] = ()


class ProxyNode(NamedTuple):
    """A node whose proxy may send traffic to the pods."""

    name: str
    ready: bool


@dataclass
class Departure:
    """What was seen of one pod. Times are of the monotonic clock; ``heard`` and ``followed`` are by node."""

    pod: DepartingPod
    evicted: float | None
    place: SlicePlace | None = None
    was_ready: bool = False
    seen_ready: bool = False
    unseen: bool = False
    """It left its slices, or may have left them, at a time that was not seen."""
    left: float | None = None
    gone: float | None = None
    heard: dict[str, float] = field(default_factory=dict)
    followed: dict[str, float] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    """Nodes whose rules have named the pod's address."""
    step: DepartureStep | None = None

    @property
    def has_moved(self) -> bool:
        """Whether its traffic has moved, or is not waited for any longer."""
        return self.step is not None and self.step.stage is DepartureStage.MOVED

    @property
    def may_change(self) -> bool:
        """Whether its slices matter: a pod that is there may get traffic again, when others of its Service leave too."""
        return self.step is None or not self.has_moved or (self.gone is None and not self.step.cut_short)
