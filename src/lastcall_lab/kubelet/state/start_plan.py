"""Plans which containers of a pod to start now (pure; ``kuberuntime_manager.go: computePodActions``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from lastcall.adapters.kube.resources import Object
from lastcall_lab.kubelet.base.settings import KubeletSettings
from lastcall_lab.kubelet.state import crash_loop_backoff
from lastcall_lab.kubelet.state.container_facts import ContainerFacts, PodFacts


class PodProgress(Enum):
    """The progress of a pod's containers."""

    LIVES = "lives"
    OVER = "over"
    """All containers that matter have ended for good; the rest is ended too."""


@dataclass(frozen=True)
class StartPlan:
    """``start`` in this order; ``pausing`` are the containers in backoff and their pauses.

    ``again_in``: seconds after which to plan again even if nothing changes.
    """

    result: PodProgress = PodProgress.LIVES
    start: Sequence[str] = ()
    pausing: Mapping[str, float] = field(default_factory=dict)
    again_in: float | None = None


def is_sidecar(container: Object) -> bool:
    """KEP-753: an init container with restartPolicy Always."""
    return container.get("restartPolicy") == "Always"


def init_containers(pod: Object) -> list[Object]:
    """The init containers, in order."""
    return list(pod["spec"].get("initContainers") or ())


def all_containers(pod: Object) -> list[Object]:
    """All containers, in the order in which they start."""
    return [*init_containers(pod), *pod["spec"]["containers"]]


def is_initialized(pod: Object, facts: PodFacts) -> bool:
    """Whether the main containers may run. Stays true once one of them has run."""
    if any(facts.facts_of(one["name"]).run for one in pod["spec"]["containers"]):
        return True
    return all(_has_passed(one, facts.facts_of(one["name"])) for one in init_containers(pod))


def _has_passed(container: Object, facts: ContainerFacts) -> bool:
    if is_sidecar(container):
        return facts.running and facts.started
    return facts.last_end is not None and facts.last_end.code == 0


def plan_start(pod: Object, facts: PodFacts, now: float, settings: KubeletSettings) -> StartPlan:
    """The plan at ``now`` (seconds since 1970)."""
    planning = _StartPlanner(pod, facts, now, settings)
    ready = is_initialized(pod, facts)
    over = planning.start_init_containers(ready=ready) or (ready and planning.start_main_containers())
    if over:
        return StartPlan(PodProgress.OVER)
    waits = list(planning.waits)
    return StartPlan(PodProgress.LIVES, tuple(planning.start), planning.pausing, min(waits) if waits else None)


class _StartPlanner:
    def __init__(self, pod: Object, facts: PodFacts, now: float, settings: KubeletSettings) -> None:
        self._pod, self._facts, self._now, self._settings = pod, facts, now, settings
        self._policy = pod["spec"].get("restartPolicy", "Always")
        self.start: list[str] = []
        self.pausing: dict[str, float] = {}
        self.waits: list[float] = []

    def start_init_containers(self, *, ready: bool) -> bool:
        """Runs init containers in sequence; once initialized, only the sidecars. True if initialization failed."""
        for one in init_containers(self._pod):
            known = self._facts.facts_of(one["name"])
            if is_sidecar(one):
                self._keep_running(one["name"], known)
                if not ready and not _has_passed(one, known):
                    return False
            elif not ready and not _has_passed(one, known):
                if known.last_end and self._policy == "Never":
                    return True
                self._keep_running(one["name"], known)
                return False
        return False

    def start_main_containers(self) -> bool:
        """Plans the main containers. True if all have ended for good."""
        over = 0
        for one in self._pod["spec"]["containers"]:
            known = self._facts.facts_of(one["name"])
            if known.last_end and (
                self._policy == "Never" or (self._policy == "OnFailure" and known.last_end.code == 0)
            ):
                over += 1
            else:
                self._keep_running(one["name"], known)
        return over == len(self._pod["spec"]["containers"])

    def _keep_running(self, name: str, known: ContainerFacts) -> None:
        """Starts or restarts the container unless it runs or is in backoff."""
        if known.running:
            return
        finished = known.last_end.finished if known.last_end else 0.0
        left = (
            crash_loop_backoff.seconds_left(known.pause, finished, self._now, self._settings) if known.last_end else 0.0
        )
        if left and known.pause:
            self.pausing[name] = known.pause.seconds
            self.waits.append(left)
        else:
            self.start.append(name)
