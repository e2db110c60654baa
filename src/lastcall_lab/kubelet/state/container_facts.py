"""What a kubelet knows of a pod's containers: the input of the pod's status."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall_lab.apiserver.values.object_meta import parse_seconds
from lastcall_lab.kubelet.state.crash_loop_backoff import RestartPause


@dataclass(frozen=True)
class RunningState:
    """A current run of a container. Seconds since 1970."""

    id: str
    started: float


@dataclass(frozen=True)
class TerminatedState:
    """An ended run; ``reason`` is Completed, Error, or why the exit code is unknown."""

    id: str
    started: float
    finished: float
    code: int
    reason: str
    message: str = ""


@dataclass(frozen=True)
class WaitingState:
    """Why a container does not run although it should."""

    reason: str
    message: str = ""


@dataclass(frozen=True, kw_only=True)
class ContainerFacts:
    """One container: its run, and the end of the run before. While ``waiting`` is set, it hides the run.

    ``started`` and ``ready`` are the results of the run's probes; ``pause`` is the backoff before the next run.
    """

    run: RunningState | TerminatedState | None = None
    last: TerminatedState | None = None
    waiting: WaitingState | None = None
    restarts: int = 0
    started: bool = False
    ready: bool = False
    pause: RestartPause | None = None

    @property
    def running(self) -> bool:
        """Whether the container runs."""
        return isinstance(self.run, RunningState)

    @property
    def last_end(self) -> TerminatedState | None:
        """How its last run ended; None if it runs or never ran."""
        return self.run if isinstance(self.run, TerminatedState) else None

    def before_probes(self, container: Object) -> "ContainerFacts":
        """A run without probe results: started if it has no startup probe, ready if it has no probes at all."""
        started = "startupProbe" not in container
        return replace(self, started=started, ready=started and "readinessProbe" not in container)

    def with_end(self, code: int | None, now: float) -> "ContainerFacts":
        """The container after its end. An unknown exit code becomes 255, as in containerd."""
        if not isinstance(self.run, RunningState):
            return self
        known = 255 if code is None else code
        reason = "Unknown" if code is None else "Completed" if code == 0 else "Error"
        over = TerminatedState(self.run.id, self.run.started, now, known, reason)
        return replace(self, run=over, waiting=None, started=False, ready=False)


_NOTHING = ContainerFacts()


@dataclass(frozen=True, kw_only=True)
class PodFacts:
    """One pod. If set, ``phase``, ``reason`` and ``message`` override what follows from the containers.

    ``over``: no container of it will run again, so its phase is final. ``leaving``: another component ends the pod and
    owns its final phase. ``withdrawn``: Services send it no more traffic. ``address`` is empty until the pod has one.
    ``conditions`` are those that do not follow from the containers, such as DisruptionTarget.
    """

    containers: Mapping[str, ContainerFacts] = field(default_factory=dict)
    host_ip: str = ""
    address: str = ""
    started_at: float | None = None
    over: bool = False
    leaving: bool = False
    withdrawn: bool = False
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Mapping[str, Any], ...] = ()

    def facts_of(self, name: str) -> ContainerFacts:
        """The facts of one container."""
        return self.containers.get(name, _NOTHING)

    def with_container(self, name: str, facts: ContainerFacts) -> "PodFacts":
        """The pod with some facts of one container replaced."""
        return replace(self, containers={**self.containers, name: facts})


def containers_from_status(pod: Object, running: Mapping[str, str], now: float) -> Mapping[str, ContainerFacts]:
    """The containers of a pod from the status that an earlier kubelet instance wrote.

    ``running`` maps names to the runs that the runtime knows. A container that no longer runs counts as running, but not
    as ready, until the runtime reports its end. A run that the status does not know counts as one more restart.
    """
    status = pod.get("status") or {}
    found = {}
    for one in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        found[one["name"]] = _container_from_status(one, running.get(one["name"], ""), now)
    for name, run in running.items():
        found.setdefault(name, ContainerFacts(run=RunningState(run, now)))
    return found


def _container_from_status(one: Mapping[str, Any], run: str, now: float) -> ContainerFacts:
    state, last = one.get("state") or {}, _terminated_state((one.get("lastState") or {}).get("terminated"))
    restarts = one.get("restartCount", 0)
    over = _terminated_state(state.get("terminated"))
    known = strip_runtime_scheme(one.get("containerID", ""))
    if "running" in state:
        started = parse_seconds(state["running"]["startedAt"]) if state["running"].get("startedAt") else now
        if run in ("", known):
            said = bool(one.get("started"))
            return ContainerFacts(
                run=RunningState(known, started),
                last=last,
                restarts=restarts,
                started=said,
                ready=said and one["ready"] and bool(run),
            )
        over = TerminatedState(known, started, now, 255, "Unknown")
    if run:
        again = over is not None or last is not None
        return ContainerFacts(run=RunningState(run, now), last=over or last, restarts=restarts + again)
    if "waiting" in state:
        return ContainerFacts(run=last, restarts=restarts)
    return ContainerFacts(run=over, last=last, restarts=restarts)


def _terminated_state(state: Mapping[str, Any] | None) -> TerminatedState | None:
    if not state:
        return None
    times = [parse_seconds(state[name]) if state.get(name) else 0.0 for name in ("startedAt", "finishedAt")]
    run, code = strip_runtime_scheme(state.get("containerID", "")), state.get("exitCode", 255)
    return TerminatedState(run, times[0], times[1], code, state.get("reason", "Error"), state.get("message", ""))


SCHEME = "lastcall://"


def strip_runtime_scheme(text: str) -> str:
    """The runtime's own id from a status's container id."""
    return text.partition("://")[2]
