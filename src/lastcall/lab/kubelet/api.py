"""What the API server asks a kubelet for: logs, and programs to run in a container."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from lastcall.adapters.kube.resources import Object
from lastcall.errors import InvalidInput, Unavailable
from lastcall.lab.apiserver.kubelets import Execution, LogOptions
from lastcall.lab.kubelet.facts import ContainerFacts
from lastcall.lab.kubelet.pods import Pods
from lastcall.lab.kubelet.runtime import Log, NodeRuntime
from lastcall.lab.kubelet.translation import runtime_pod
from lastcall.lab.kubelet.worker import PodWorker
from lastcall.ports import Clock

FOLLOW_SECONDS = 0.2
"""Between two looks at a log that is followed."""

Line = tuple[float, bytes]


class Api:
    """``apiserver.kubelets.Kubelet``."""

    def __init__(self, pods: Pods, runtime: NodeRuntime, clock: Clock) -> None:
        self._pods = pods
        self._runtime = runtime
        self._clock = clock

    async def logs(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """Of the container's run that goes on or was the last; of the one before with ``previous``.

        InvalidInput if there was no such run.
        """
        worker = self._worker(pod)
        attempt = _attempt(pod, worker.record.facts.of(options.container), options)
        known = runtime_pod(pod, paths={}, address="", mounts=False)
        log = self._runtime.log(known, options.container, attempt)
        left = options.limit_bytes
        async for at, line in self._lines(worker, log, attempt, options):
            text = f"{_stamp(at)} ".encode() + line if options.timestamps else line
            if left is not None:
                text = text[:left]
                left -= len(text)
            yield text
            if left == 0:
                return

    async def execute(
        self, pod: Object, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Execution:
        """InvalidInput if the container does not run."""
        worker = self._worker(pod)
        if not worker.record.facts.of(container).running:
            raise InvalidInput("exec", [f'container not found ("{container}")'])
        return await self._runtime.execute(worker.live(), container, command, stdin=stdin, tty=tty)

    def _worker(self, pod: Object) -> PodWorker:
        worker = self._pods.workers.get(pod["metadata"]["uid"])
        if worker is None:
            raise Unavailable(f"pod {pod['metadata']['name']} is not known to its node")
        return worker

    async def _lines(self, worker: PodWorker, log: Log, attempt: int, options: LogOptions) -> AsyncIterator[Line]:
        begin, position = await _all(log)
        if options.tail is not None:
            begin = deque(begin, maxlen=options.tail)
        since = options.since or 0.0
        for line in begin:
            if line[0] >= since:
                yield line
        while options.follow:
            over = not self._runs(worker, options.container, attempt)
            lines, position = await log.read(position)
            for line in lines:
                yield line
            if not lines:
                if over:
                    return
                await self._clock.sleep(FOLLOW_SECONDS)

    def _runs(self, worker: PodWorker, container: str, attempt: int) -> bool:
        known = worker.record.facts.of(container)
        return known.running and known.restarts == attempt and worker.record.uid in self._pods.workers


async def _all(log: Log) -> tuple[deque[Line], int]:
    found: deque[Line] = deque()
    position = 0
    while True:
        lines, position = await log.read(position)
        if not lines:
            return found, position
        found.extend(lines)


def _attempt(pod: Object, known: ContainerFacts, options: LogOptions) -> int:
    """``kubelet_pods.go: validateContainerLogStatus``."""
    name, container = pod["metadata"]["name"], options.container
    if options.previous:
        if known.restarts == 0 or known.last is None:
            said = f'previous terminated container "{container}" in pod "{name}" not found'
            raise InvalidInput("previous", [said])
        return known.restarts - 1
    if known.run is None and known.last is None:
        why = known.waiting.reason if known.waiting else "ContainerCreating"
        raise InvalidInput("log", [f'container "{container}" in pod "{name}" is waiting to start: {why}'])
    return known.restarts


def _stamp(at: float) -> str:
    """RFC 3339 with nanoseconds, as the CRI writes it."""
    whole = datetime.fromtimestamp(at, UTC)
    return whole.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
