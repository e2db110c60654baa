"""Small parts for tests of the core in virtual time."""

from dataclasses import dataclass, field
from itertools import count

from lastcall.aio import Signal
from lastcall.model.pods import (
    Container,
    Lifecycle,
    LifecycleHandler,
    ObjectMetadata,
    Pod,
    PodSpec,
    PodStatus,
    SleepAction,
)
from lastcall.model.shutdown import PhasePlan
from lastcall.ports.node import ApplicationReadiness

_uids = count(1)


def phases(*pairs):
    return tuple(PhasePlan(priority=priority, seconds=seconds) for priority, seconds in pairs)


def pod(name, *, priority=0, grace=30, containers=("main",), sidecars=(), hook=None, phase="Running", uid=None):
    """A pod; ``hook`` is a Handler that every container gets, or seconds to sleep."""
    handler = LifecycleHandler(sleep=SleepAction(seconds=hook)) if isinstance(hook, int) else hook
    lifecycle = Lifecycle(pre_stop=handler) if handler else None
    return Pod(
        metadata=ObjectMetadata(name=name, namespace="default", uid=uid or f"uid-{next(_uids)}"),
        spec=PodSpec(
            node_name="n1",
            priority=priority,
            termination_grace_period_seconds=grace,
            containers=tuple(Container(name=c, lifecycle=lifecycle) for c in containers),
            init_containers=tuple(Container(name=c, restart_policy="Always", lifecycle=lifecycle) for c in sidecars),
        ),
        status=PodStatus(phase=phase),
    )


@dataclass
class RecordingNode:
    """ports.NodeFace that notes when it was told what."""

    clock: object
    told: list = field(default_factory=list)
    slow: float = 0.0
    ending: float | None = None
    """After how long the kubelet has its SIGTERM; None: when it has ended."""
    slowly_back: float = 0.0
    slow_word: float = 0.0
    begun: list = field(default_factory=list)
    """When each pod was announced, its name, its grace period, and until when SIGTERM may wait."""
    traffic: dict = field(default_factory=dict)
    """How long the pods, by name, still receive traffic."""
    spares: tuple = ()
    """The pods by name that may be left alone after a cancellation."""
    ready_at: dict = field(default_factory=dict)
    """When the applications of guarded pods, by name, can do without them."""
    unreadable: frozenset = frozenset()
    """The guarded pods, by name, at which the wait for the application fails."""
    notes: list = field(default_factory=list)
    cleaned_up: list = field(default_factory=list)
    """The shutdowns after which it was told to clean up."""
    unmounts: tuple = ()
    """The pods by name whose volumes it says are unmounted."""
    stopped_again: Signal = field(default_factory=Signal)
    slow_end: dict = field(default_factory=dict)
    """How long the end of each pod, by name, takes, because its volumes are unmounted."""

    def _note(self, what):
        self.told.append((self.clock.boottime(), what))

    def refuse_pods(self):
        self._note("refuse")

    async def begin_shutdown(self, deadline):
        await self.clock.sleep(self.slow)
        self._note("not ready")

    async def wait_until_ending(self):
        await self.clock.sleep(self.slow if self.ending is None else self.ending)

    async def wait_until_stopped_again(self):
        await self.stopped_again.next()

    def expect_pods(self, namespaces):
        self.namespaces = set(namespaces)
        self._note("expect")

    async def wait_until_prepared(self, live, until):
        if live.pod.metadata.name in self.unreadable:
            raise ValueError("no number: 'x'")
        ready_at = self.ready_at.get(live.pod.metadata.name)
        if ready_at is None:
            return None
        while self.clock.boottime() < min(ready_at, until()):
            await self.clock.sleep(0.1)
        is_ready = self.clock.boottime() >= ready_at
        return ApplicationReadiness(is_ready=is_ready, message="" if is_ready else "2 of 3 members")

    async def begin_pod(self, live, grace, until):
        self.begun.append((self.clock.boottime(), live.pod.metadata.name, grace, until))
        if seconds := self.traffic.pop(live.pod.metadata.name, 0):  # it does not come back
            await self.clock.sleep(min(seconds, until - self.clock.boottime()))
        return live.pod.metadata.name in self.spares

    def take_notes(self):
        notes, self.notes = self.notes, []
        return notes

    async def clean_up(self, last):
        self.cleaned_up.append(last)

    async def report_pod_ended(self, live, exit_codes):
        self._note(f"ended {live.pod.metadata.name}")
        await self.clock.sleep(self.slow_end.get(live.pod.metadata.name, 0.0))
        return live.pod.metadata.name in self.unmounts

    async def report_finished(self):
        await self.clock.sleep(self.slow_word)
        self._note("last word")

    async def mark_ready(self):
        await self.clock.sleep(self.slowly_back)
        self._note("back")

    def whens(self, what):
        return [at for at, told in self.told if told == what]
