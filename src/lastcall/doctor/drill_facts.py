"""What a drill finds out about a node beside the course of the shutdown: each fact, or why it is not known."""

from lastcall.doctor.facts import HostFacts, UnknownFact
from lastcall.model.base import Facts
from lastcall.model.shutdown import ShutdownRecord


class KubeletUnitFacts(Facts, frozen=True):
    """The unit that is stopped at a shutdown: its states in systemd, and whether it may be stopped by request."""

    name: str
    load: str
    active: str
    can_stop: bool


class TrafficFacts(Facts, frozen=True):
    """Which pods (by uid) EndpointSlices name as ready, and how long proxies need to follow, in seconds.

    ``source`` says where ``settle_seconds`` is from; ``limit_seconds`` is the longest wait of a SIGTERM.
    """

    serving: frozenset[str]
    settle_seconds: float
    source: str
    limit_seconds: float


class DrillVolume(Facts, frozen=True):
    """A volume that has to be unmounted when its pod has ended; ``problem`` is why it would stay mounted, or ""."""

    pod: str
    title: str
    problem: str = ""


class DrillFacts(Facts, frozen=True):
    """All of them. ``kubelet_unit`` is None if the agent stops none; ``host`` has what doctor's own checks need."""

    host: HostFacts
    record: ShutdownRecord
    kubelet_unit: KubeletUnitFacts | UnknownFact | None
    traffic: TrafficFacts | UnknownFact
    volumes: tuple[DrillVolume, ...] | UnknownFact
