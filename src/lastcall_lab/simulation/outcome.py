"""What a rehearsal has measured: facts alone, to be printed, drawn or kept as JSON (``measure.outcome`` makes them).

Seconds count from the scenario's time 0, when everything runs, unless a field says otherwise; all are rounded to
milliseconds. Everything comes from ground truth: what reached the containers, the machines' power, the records of the
storage, and what clients outside the machines knew of endpoints.
"""

from enum import Enum

from lastcall.model.base import Facts
from lastcall_lab.simulation.scenario import Expectation, ScenarioWorkloadKind


class TimelineTopic(Enum):
    """What a line of the timeline is about."""

    EVENT = "event"
    """Something that the scenario wants to happen."""
    MACHINE = "machine"
    """Power, shutdowns, cables and programs of a machine."""
    PODS = "pods"
    """Containers that began or ended."""
    VIOLATION = "violation"
    """A broken promise."""


class TimelineLine(Facts, frozen=True):
    """Something that has happened at ``at``, in words: ``node-2 goes down``, ``2 pods of web end on node-2``."""

    at: float
    topic: TimelineTopic
    text: str


class OutageSpan(Facts, frozen=True):
    """From ``begin`` to ``end``, which is at most the end of the rehearsal."""

    begin: float
    end: float


class RequestLoss(Facts, frozen=True):
    """From ``begin`` to ``end`` the given ``part`` (above 0, at most 1) of new connections to a workload failed."""

    begin: float
    end: float
    part: float


class CountStep(Facts, frozen=True):
    """From ``at`` until the next step there were so many."""

    at: float
    count: int


class MachineState(Enum):
    """How a machine is."""

    ON = "on"
    STARTING = "starting"
    """It has power; its kubelet does not run yet."""
    GOING_DOWN = "going down"
    """From its button's being pressed until its power goes, or the shutdown is called off."""
    OFF = "off"
    CUT_OFF = "cut off"
    """From the control plane; its pods run on."""
    NO_STORAGE = "no storage"
    """Its pods run on, and cannot write to their volumes."""
    HUNG = "hung"
    """Its kubelet has stopped; its pods run on."""


class MachineSpan(Facts, frozen=True):
    """A machine was in ``state`` from ``begin`` to ``end``."""

    begin: float
    end: float
    state: MachineState


class MachineOutcome(Facts, frozen=True):
    """One machine. ``spans`` follow each other without a gap, from 0 to the end."""

    name: str
    spans: tuple[MachineSpan, ...]


class WorkloadOutcome(Facts, frozen=True):
    """What became of one workload of the scenario.

    A pod serves while its container runs and is ready: from ``ready`` seconds after its start to its end, or to its
    SIGTERM if it does not drain. What the API server says of it does not matter.
    """

    name: str
    namespace: str
    kind: ScenarioWorkloadKind
    wanted: int
    """How many pods there should be at the end (``wanted_steps``)."""
    serving: int
    """How many serve at the end."""
    down: float
    """Seconds in which a pod was wanted and none served; with a leader: in which nobody led."""
    degraded: float
    """Seconds in which fewer served than were wanted, those of ``down`` among them."""
    longest_outage: float
    """The longest time down without a break, in seconds; of a StatefulSet also that of one of its pods."""
    pod_down: float
    """Of a StatefulSet: the most seconds that one of its pods, which are known by their names, did not serve; else 0."""
    requests: float
    """How many its clients have made; each is a new connection."""
    requests_lost: float
    """How many of them failed: requests a second, times the part that fails, over time. Not rounded to whole ones."""
    writes: int
    """Lines that the storage acknowledged."""
    writes_refused: int
    """Lines that it did not take, and said so."""
    writes_lost: int
    """Acknowledged lines that are not in the volume, or came from a machine the volume had been taken from."""
    killed: int
    """How many times a container ended by SIGKILL."""
    power_cut: int
    """How many times a container ended because its machine had no power any more."""
    unconfirmed: int
    """How many containers that had got SIGTERM or SIGKILL still ran at the end."""
    hooks_missed: int
    """How many times a container with a preStop hook was ended before the hook had run to its end."""
    restarts: int
    """How many times a container was started in a pod whose container had run before."""
    serving_steps: tuple[CountStep, ...]
    """How many pods serve, from 0 on."""
    wanted_steps: tuple[CountStep, ...]
    """How many pods there should be: as many as the scenario says; of a DaemonSet as many as there are machines that are
    up (neither off, starting nor going down); of a Job those that have not finished."""
    outages: tuple[OutageSpan, ...]
    """When it was down."""
    losses: tuple[RequestLoss, ...]
    """When requests were lost."""


class ExpectationResult(Facts, frozen=True):
    """Whether what was expected ``holds``, and what was ``measured``, in words: ``12.5 s``, ``2 of 3 pods``."""

    expectation: Expectation
    holds: bool
    measured: str


class ReportedViolation(Facts, frozen=True):
    """A promise (``invariants.Rule``, by its words) that was broken at ``at``, and how."""

    at: float
    rule: str
    what: str


class FaultCount(Facts, frozen=True):
    """A fault of that ``kind`` has hit that ``step`` so many times."""

    kind: str
    step: str
    count: int


class RehearsalOutcome(Facts, frozen=True):
    """What came out of one rehearsal."""

    scenario: str
    description: str
    seed: str
    lasts: float
    """How long it was."""
    lines: tuple[TimelineLine, ...]
    """The timeline, in order; what happened before time 0 is not in it."""
    workloads: tuple[WorkloadOutcome, ...]
    """In the scenario's order."""
    nodes: tuple[MachineOutcome, ...]
    """In the scenario's order."""
    verdicts: tuple[ExpectationResult, ...]
    """One for each expectation, in their order."""
    violations: tuple[ReportedViolation, ...]
    faults: tuple[FaultCount, ...]
    """By kind and step, sorted."""

    @property
    def is_good(self) -> bool:
        """All that was expected holds, and no promise was broken."""
        return not self.violations and all(one.holds for one in self.verdicts)
