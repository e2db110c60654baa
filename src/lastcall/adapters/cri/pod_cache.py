"""A copy of the runtime's list of pods, refreshed in the background, so that a shutdown starts without a request."""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.adapters.cri.pod_listing import join_pods
from lastcall.adapters.cri.sandbox_looks import SandboxLooks
from lastcall.adapters.cri.spec_sources import SpecSources
from lastcall.aio import OrderedTaskGroup, wait_first
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock, RunningPod

log = logging.getLogger(__name__)

POLL = 10.0
"""Seconds between two refreshes without an event; a refresh with 50 pods costs about 3 ms of CPU."""

SETTLE = 0.2
"""Seconds between an event and the refresh: starting one pod causes half a dozen events."""

KEEP = 30.0
"""Seconds for which the last list stays valid while the runtime is unavailable: containers keep running without it."""

_RETRY = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class PodCache:
    """The pods as of the last refresh. ``sources`` is called at every refresh.

    While ``is_busy`` there is no refresh in the background: the runtime's time is for others. A shutdown lists the pods
    itself, every two seconds and at the end of each phase, which refreshes the copy too.
    """

    def __init__(
        self,
        connection: CriConnection,
        clock: Clock,
        *,
        sources: Callable[[], SpecSources],
        node_name: str,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._sources = sources
        self._node_name = node_name
        self._pods: Sequence[RunningPod] = ()
        self._good_until = -math.inf
        self._changed = asyncio.Event()
        self._tasks = OrderedTaskGroup()
        self._told: frozenset[str] = frozenset()
        self._looks = SandboxLooks(connection)
        self._is_busy = is_busy

    def start(self) -> None:
        """Starts the background refresh. The first one follows at once, so that a shutdown need not do it."""
        self._changed.set()
        self._tasks.start(self._keep_fresh(), "cri mirror")
        self._tasks.start(self._listen_for_events(), "cri events")

    def refresh_soon(self) -> None:
        """Makes the next refresh come sooner: a source knows more than before."""
        self._changed.set()

    async def stop(self) -> None:
        """Ends the background refresh."""
        await self._tasks.cancel()

    async def wait_for_looks(self) -> None:
        """Waits for what ``find_pod`` has asked the runtime; call it when the connection is closed."""
        await self._looks.wait_until_over()

    async def pods(self) -> Sequence[RunningPod]:
        """Returns the copy at once; reads if it is not refreshed, or if the runtime has not answered for long."""
        if self._tasks.running_count and self._clock.boottime() < self._good_until:
            return self._pods
        return await self.list_pods()

    async def list_pods(self) -> Sequence[RunningPod]:
        """Reads the list anew and stores it; raises Unavailable."""
        containers, sandboxes = await _list_running(self._connection)
        sources = self._sources()  # after the lists, so that it knows what it can about them
        found, notes = join_pods(sandboxes.items, containers.containers, sources=sources, node_name=self._node_name)
        self._log_new_notes(notes)
        self._pods = found
        self._good_until = self._clock.boottime() + KEEP
        return found

    async def find_pod(self, sandbox: str) -> RunningPod | None:
        """Reads the pod of this sandbox, without a change to the copy; None if no container of it runs.

        Raises Unavailable.
        """
        containers = await self._looks.running_containers(sandbox)
        if not containers:
            return None
        this = cri.ListPodSandboxRequest(filter=cri.PodSandboxFilter(id=sandbox))
        sandboxes = (await self._connection.call("ListPodSandbox", this)).items
        found, _ = join_pods(sandboxes, containers, sources=self._sources(), node_name=self._node_name)
        return next((live for live in found if live.sandbox == sandbox), None)

    def _log_new_notes(self, notes: list[str]) -> None:
        for note in notes:
            if note not in self._told:
                log.warning("%s", note)
        self._told = frozenset(notes)

    async def _keep_fresh(self) -> None:
        while True:
            await wait_first(self._changed.wait(), self._clock.sleep(POLL))
            if self._changed.is_set():
                await self._clock.sleep(SETTLE)
            if self._is_busy():
                self._changed.set()
                continue
            self._changed.clear()
            try:
                await self.list_pods()
            except Unavailable as error:
                log.debug("no list of pods: %s", error)  # the next caller gets the error

    async def _listen_for_events(self) -> None:
        """Listens for events, which only make the next refresh come sooner: a lost event delays nothing for good.

        The stream ends with the runtime.
        """
        failures = 0
        while True:
            try:
                if not broadcasts_events(await self._connection.call("Version", cri.VersionRequest())):
                    return
                async for _ in self._connection.listen("GetContainerEvents", cri.GetEventsRequest()):
                    failures = 0
                    self._changed.set()
            except Unavailable as error:
                log.debug("no events: %s", error)
            await self._clock.sleep(_RETRY[min(failures, len(_RETRY) - 1)])
            failures += 1
            self._changed.set()


async def read_running_pods(
    connection: CriConnection, sources: SpecSources, node_name: str
) -> tuple[list[RunningPod], list[str]]:
    """Reads the pods once: those with running containers, and notes as of ``join_pods``. Raises Unavailable."""
    containers, sandboxes = await _list_running(connection)
    return join_pods(sandboxes.items, containers.containers, sources=sources, node_name=node_name)


async def _list_running(
    connection: CriConnection,
) -> tuple[cri.ListContainersResponse, cri.ListPodSandboxResponse]:
    ready = cri.PodSandboxFilter(state=cri.PodSandboxStateValue(state=cri.SANDBOX_READY))
    running = cri.ContainerFilter(state=cri.ContainerStateValue(state=cri.CONTAINER_RUNNING))
    # Containers are listed first: the sandbox of a listed container then exists already.
    containers = await connection.call("ListContainers", cri.ListContainersRequest(filter=running))
    return containers, await connection.call("ListPodSandbox", cri.ListPodSandboxRequest(filter=ready))


def broadcasts_events(version: cri.VersionResponse) -> bool:
    """Whether every subscriber gets all events of the runtime.

    containerd 1.6 has no events, and 1.7 gives each event to one subscriber only: listening there would take events
    away from the kubelet (containerd issue 7318, solved in 2.0). Other runtimes are treated the same way, as their
    behavior is unknown.
    """
    major = version.runtime_version.removeprefix("v").partition(".")[0]
    return version.runtime_name == "containerd" and major.isdigit() and int(major) >= 2
