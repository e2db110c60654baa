"""The objects that tell how a node stands: its Node, the pods of its agents, and its last shutdown (pure)."""

from msgspec import field

from lastcall.model.base import Facts, Time
from lastcall.model.pods import StatusCondition
from lastcall.model.shutdown import PodOutcome, ShutdownMode, ShutdownOutcome, ShutdownState


class ObjectIdentity(Facts, frozen=True):
    """v1.ObjectMeta, as far as it tells which object this is."""

    name: str
    uid: str = ""
    annotations: dict[str, str] | None = None


class _NodeSpec(Facts, frozen=True):
    unschedulable: bool = False


class _SystemInfo(Facts, frozen=True):
    boot_id: str = field(name="bootID", default="")


class _NodeStatus(Facts, frozen=True):
    conditions: tuple[StatusCondition, ...] | None = None
    node_info: _SystemInfo = _SystemInfo()


class StandingNode(Facts, frozen=True):
    """A Node, as far as it tells how its agent stands."""

    metadata: ObjectIdentity
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()

    def find_condition(self, kind: str) -> StatusCondition | None:
        """The condition of this type; None if there is none."""
        return _find(self.status.conditions, kind)


class _Container(Facts, frozen=True):
    name: str
    args: tuple[str, ...] | None = None


class _PodSpec(Facts, frozen=True):
    node_name: str = ""
    containers: tuple[_Container, ...] = ()


class _PodStatus(Facts, frozen=True):
    phase: str = ""
    conditions: tuple[StatusCondition, ...] | None = None


class AgentPod(Facts, frozen=True):
    """A pod of the agents' DaemonSet."""

    metadata: ObjectIdentity
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()

    @property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        ready = _find(self.status.conditions, "Ready")
        return ready is not None and ready.status == "True"


class _Note(Facts, frozen=True):
    message: str = ""


class EndedPod(Facts, frozen=True):
    """A pod of a recorded shutdown."""

    namespace: str
    name: str
    outcome: PodOutcome | None = None
    cut_short: bool = False

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class _ShutdownSpec(Facts, frozen=True):
    boot_id: str = field(name="bootID", default="")
    mode: ShutdownMode = ShutdownMode.ENFORCE


class _ShutdownStatus(Facts, frozen=True):
    state: ShutdownState = ShutdownState.ANNOUNCED
    outcome: ShutdownOutcome = ShutdownOutcome.RUNNING
    start_time: Time | None = None
    deadline_time: Time | None = None
    returned_time: Time | None = None
    pods_ended: str = ""
    pods: tuple[EndedPod, ...] = ()
    notes: tuple[_Note, ...] = ()


class RecordedShutdown(Facts, frozen=True):
    """A NodeShutdown, as far as an overview needs it: without the course of each pod's end."""

    metadata: ObjectIdentity
    spec: _ShutdownSpec = _ShutdownSpec()
    status: _ShutdownStatus = _ShutdownStatus()


class NodeStandingFacts(Facts, frozen=True):
    """What the API server knows of a node. ``agents`` is None if that may not be read, ``shutdown`` if there is none."""

    node: StandingNode
    agents: tuple[AgentPod, ...] | None = ()
    shutdown: RecordedShutdown | None = None


def _find(conditions: tuple[StatusCondition, ...] | None, kind: str) -> StatusCondition | None:
    return next((one for one in conditions or () if one.type == kind), None)
