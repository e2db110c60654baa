"""Sees one pod off: its containers, also those that were started meanwhile, then its sandbox and its last status."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from lastcall.errors import LastcallError, Unavailable
from lastcall.graceful.allotment import Allotment
from lastcall.graceful.journal import told_again
from lastcall.graceful.pod_end import PodEnd, Tell
from lastcall.graceful.termination import was_killed
from lastcall.model.pods import DEFAULT_GRACE, Metadata, Pod, priority
from lastcall.model.shutdown import ContainerRecord, Event, PodEnded, PodOutcome, PodRecord, PodStarted, PodUnmounted
from lastcall.ports import Clock, LivePod, NodeFace, PodRuntime

SANDBOX_SECONDS = 2.0
"""How long a phase waits, out of its own time, for the sandbox of a pod whose containers have ended.

Its network is torn down meanwhile, for which the pods of a later phase may be needed; but who hangs there holds nobody up.
"""

_RETRY = 0.25
"""Seconds between two attempts to reach a runtime that is away."""


class SeeingOff:
    """One pod on its way. ``before`` as of ``PodEnd``; ``called_off`` says whether the machine stays up after all."""

    def __init__(
        self,
        live: LivePod,
        *,
        time: Allotment,
        runtime: PodRuntime,
        node: NodeFace,
        clock: Clock,
        tell: Tell,
        called_off: Callable[[], bool],
        before: Iterable[ContainerRecord] = (),
    ) -> None:
        self._live = live
        self._time = time
        self._runtime = runtime
        self._node = node
        self._clock = clock
        self._tell = tell
        self._called_off = called_off
        self._before = before
        self._over: set[str] = set()
        self._killed = False
        self._codes: dict[str, int | None] = {}

    async def containers(self) -> None:
        """Returns when none of it runs any more, and has told so.

        The list that this began with may be seconds old. A container that the kubelet has started since, in the place
        of another or after an init container, has its hook, its SIGTERM and what is left of the pod's time as well.
        """
        now: LivePod | None = self._live
        before = self._before
        while now:
            end = PodEnd(now, time=self._time, runtime=self._runtime, clock=self._clock, tell=self._tell, before=before)
            await end.run()
            self._over.update(now.containers.values())
            self._killed = self._killed or end.killed
            self._codes |= end.codes
            now, before = await self._started_since(), ()
        outcome = PodOutcome.KILLED if self._killed else PodOutcome.GRACEFUL
        self._tell(PodEnded(at=self._clock.boottime(), uid=self._live.pod.metadata.uid, outcome=outcome))

    async def sandbox(self) -> None:
        """Tears it down, as soon as the runtime can be reached.

        A shutdown that was called off asks for it once and no more: what the runtime does not hear then is the kubelet's.
        """
        while True:
            try:
                return await self._runtime.finish(self._live)
            except Unavailable:
                if self._called_off():
                    return None
                await self._clock.sleep(_RETRY)
            except LastcallError:
                return None

    async def last_status(self) -> None:
        """Returns when it is written."""
        if await self._node.pod_ended(self._live, self._codes):
            self._tell(PodUnmounted(at=self._clock.boottime(), uid=self._live.pod.metadata.uid))

    async def _started_since(self) -> LivePod | None:
        """What runs all the same. After a cancel it is the kubelet's: it has started it, and it stays."""
        while not self._called_off():
            try:
                now = await self._runtime.look_again(self._live)
            except Unavailable:
                await self._clock.sleep(_RETRY)
            else:
                found = now.containers.items() if now else ()
                left = {name: run for name, run in found if run not in self._over}
                return replace(now, containers=left) if now and left and not self._called_off() else None
        return None


def beginning(live: LivePod, index: int, time: Allotment, record: PodRecord | None, *, clock: Clock) -> Iterator[Event]:
    """What the journal gets first, made when the pod's turn comes: the first of a hundred waits for no other."""
    at = clock.boottime() if record else time.window.started
    asked = live.pod.spec.termination_grace_period_seconds
    yield PodStarted(
        at=at,
        uid=live.pod.metadata.uid,
        namespace=live.pod.metadata.namespace,
        name=live.pod.metadata.name,
        priority=priority(live.pod),
        phase=index,
        grace=round(time.window.grace, 3),
        asked=DEFAULT_GRACE if asked is None else asked,
        containers=tuple(live.containers),
    )
    yield from told_again(record, at) if record else ()


async def note_absent(record: PodRecord, *, node: NodeFace, clock: Clock, tell: Tell) -> None:
    """It has ended while nobody looked. Raises what the node does."""
    killed = any(container.kill is not None and was_killed(container.exit_code) for container in record.containers)
    tell(PodEnded(at=clock.boottime(), uid=record.uid, outcome=PodOutcome.KILLED if killed else PodOutcome.GRACEFUL))
    pod = Pod(metadata=Metadata(name=record.name, namespace=record.namespace, uid=record.uid))
    if await node.pod_ended(LivePod(pod=pod, containers={}), {}):
        tell(PodUnmounted(at=clock.boottime(), uid=record.uid))
