"""The kubelet's API for the API server: container logs and exec."""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from lastcall.adapters.kube.resources import Object
from lastcall.errors import InvalidInput, Unavailable
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.subresources.kubelet_api import ExecSession, LogOptions
from lastcall_lab.kubelet.base.node_runtime import ContainerLog, NodeRuntime
from lastcall_lab.kubelet.node.pod_manager import PodManager
from lastcall_lab.kubelet.pod.pod_worker import PodWorker
from lastcall_lab.kubelet.spec.static_pods import mirrored_uid
from lastcall_lab.kubelet.spec.translation import runtime_pod
from lastcall_lab.kubelet.state.container_facts import ContainerFacts

FOLLOW_SECONDS = 0.2
"""Seconds between two reads of a followed log."""

Line = tuple[float, bytes]


class LogsAndExec:
    """``kubelet_api.KubeletApi`` of a lab node."""

    def __init__(self, pods: PodManager, runtime: NodeRuntime, clock: Clock) -> None:
        self._pods = pods
        self._runtime = runtime
        self._clock = clock

    async def logs(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The log of the container's current or last run; of the run before that with ``previous``.

        InvalidInput if that run does not exist.
        """
        worker = self._running_worker(pod)
        attempt = _log_attempt(pod, worker.record.facts.facts_of(options.container), options)
        known = runtime_pod(worker.record.pod, paths={}, address="", mounts=False)
        log = self._runtime.open_log(known, options.container, attempt)
        left = options.limit_bytes
        async for at, line in self._follow_lines(worker, log, attempt, options):
            text = f"{_format_timestamp(at)} ".encode() + line if options.timestamps else line
            if left is not None:
                text = text[:left]
                left -= len(text)
            yield text
            if left == 0:
                return

    async def execute(
        self, pod: Object, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Runs a program in a container. InvalidInput if the container does not run."""
        worker = self._running_worker(pod)
        if not worker.record.facts.facts_of(container).running:
            raise InvalidInput("exec", [f'container not found ("{container}")'])
        return await self._runtime.execute(worker.live_pod(), container, command, stdin=stdin, tty=tty)

    def _running_worker(self, pod: Object) -> PodWorker:
        workers = self._pods.workers
        worker = workers.get(pod["metadata"]["uid"]) or workers.get(mirrored_uid(pod))
        if worker is None:
            raise Unavailable(f"pod {pod['metadata']['name']} is not known to its node")
        return worker

    async def _follow_lines(
        self, worker: PodWorker, log: ContainerLog, attempt: int, options: LogOptions
    ) -> AsyncIterator[Line]:
        begin, position = await _read_all(log)
        if options.tail is not None:
            begin = deque(begin, maxlen=options.tail)
        since = options.since or 0.0
        for line in begin:
            if line[0] >= since:
                yield line
        while options.follow:
            over = not self._is_running(worker, options.container, attempt)
            lines, position = await log.read(position)
            for line in lines:
                yield line
            if not lines:
                if over:
                    return
                await self._clock.sleep(FOLLOW_SECONDS)

    def _is_running(self, worker: PodWorker, container: str, attempt: int) -> bool:
        known = worker.record.facts.facts_of(container)
        return known.running and known.restarts == attempt and worker.record.uid in self._pods.workers


async def _read_all(log: ContainerLog) -> tuple[deque[Line], int]:
    found: deque[Line] = deque()
    position = 0
    while True:
        lines, position = await log.read(position)
        if not lines:
            return found, position
        found.extend(lines)


def _log_attempt(pod: Object, known: ContainerFacts, options: LogOptions) -> int:
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


def _format_timestamp(at: float) -> str:
    """RFC 3339 with nanoseconds, as the CRI writes it."""
    whole = datetime.fromtimestamp(at, UTC)
    return whole.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
