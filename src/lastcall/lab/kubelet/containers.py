"""Which containers of a pod are to be started now (pure; ``kuberuntime_manager.go: computePodActions``)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from lastcall.adapters.kube.resources import Object
from lastcall.lab.kubelet import backoff
from lastcall.lab.kubelet.facts import ContainerFacts, PodFacts
from lastcall.lab.kubelet.settings import Settings


class Result(Enum):
    """How a pod stands."""

    LIVES = "lives"
    OVER = "over"
    """All that matters has ended and is not started again: what is left is ended too."""


@dataclass(frozen=True)
class Plan:
    """``start`` in this order; ``pausing`` tells which wait for their next start, and how long their pause is.

    ``again_in`` is when to look again although nothing has changed, in seconds.
    """

    result: Result = Result.LIVES
    start: Sequence[str] = ()
    pausing: Mapping[str, float] = field(default_factory=dict)
    again_in: float | None = None


def is_sidecar(container: Object) -> bool:
    """KEP-753: an init container that runs on."""
    return container.get("restartPolicy") == "Always"


def init_containers(pod: Object) -> list[Object]:
    """In their order."""
    return list(pod["spec"].get("initContainers") or ())


def every_container(pod: Object) -> list[Object]:
    """In the order in which they start."""
    return [*init_containers(pod), *pod["spec"]["containers"]]


def initialized(pod: Object, facts: PodFacts) -> bool:
    """Whether the main containers may run: once one of them has, always."""
    if any(facts.of(one["name"]).run for one in pod["spec"]["containers"]):
        return True
    return all(_passed(one, facts.of(one["name"])) for one in init_containers(pod))


def _passed(container: Object, facts: ContainerFacts) -> bool:
    if is_sidecar(container):
        return facts.running and facts.started
    return facts.ended is not None and facts.ended.code == 0


def plan(pod: Object, facts: PodFacts, now: float, settings: Settings) -> Plan:
    """What is to be done at ``now`` (seconds since 1970)."""
    planning = _Planning(pod, facts, now, settings)
    ready = initialized(pod, facts)
    over = planning.init(ready=ready) or (ready and planning.main())
    if over:
        return Plan(Result.OVER)
    waits = list(planning.waits)
    return Plan(Result.LIVES, tuple(planning.start), planning.pausing, min(waits) if waits else None)


class _Planning:
    def __init__(self, pod: Object, facts: PodFacts, now: float, settings: Settings) -> None:
        self._pod, self._facts, self._now, self._settings = pod, facts, now, settings
        self._policy = pod["spec"].get("restartPolicy", "Always")
        self.start: list[str] = []
        self.pausing: dict[str, float] = {}
        self.waits: list[float] = []

    def init(self, *, ready: bool) -> bool:
        """Init containers one after the other; once the pod is initialized only its sidecars. True: it has failed."""
        for one in init_containers(self._pod):
            known = self._facts.of(one["name"])
            if is_sidecar(one):
                self._keep(one["name"], known)
                if not ready and not _passed(one, known):
                    return False
            elif not ready and not _passed(one, known):
                if known.ended and self._policy == "Never":
                    return True
                self._keep(one["name"], known)
                return False
        return False

    def main(self) -> bool:
        """True: all have ended for good."""
        over = 0
        for one in self._pod["spec"]["containers"]:
            known = self._facts.of(one["name"])
            if known.ended and (self._policy == "Never" or (self._policy == "OnFailure" and known.ended.code == 0)):
                over += 1
            else:
                self._keep(one["name"], known)
        return over == len(self._pod["spec"]["containers"])

    def _keep(self, name: str, known: ContainerFacts) -> None:
        """Has it run."""
        if known.running:
            return
        finished = known.ended.finished if known.ended else 0.0
        left = backoff.left(known.pause, finished, self._now, self._settings) if known.ended else 0.0
        if left and known.pause:
            self.pausing[name] = known.pause.seconds
            self.waits.append(left)
        else:
            self.start.append(name)
