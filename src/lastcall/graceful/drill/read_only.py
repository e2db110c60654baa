"""The outside of a drill: it can be read, and everything else is refused.

Mode Observe asks for none of the refused calls. Should it ever, a drill breaks off before it does harm.
"""

from collections.abc import Callable, Iterable, Sequence

from lastcall.errors import RefusedForSafety
from lastcall.model.pods import LifecycleHandler
from lastcall.model.shutdown import ShutdownRecord
from lastcall.ports.node import ApplicationReadiness, HookResult, JournalFile, PodRuntime, RunningPod


def _refuse(what: str) -> RefusedForSafety:
    return RefusedForSafety(f"a drill must not {what}: this is a bug of lastcall; nothing was done")


class ReadOnlyRuntime:
    """``ports.node.PodRuntime`` that lists the pods of ``runtime`` and ends none."""

    def __init__(self, runtime: PodRuntime) -> None:
        self._runtime = runtime
        self.pods: dict[str, RunningPod] = {}
        """All pods that were listed, by uid."""

    async def list_pods(self) -> Sequence[RunningPod]:
        """Calls the runtime."""
        return self._remember(await self._runtime.list_pods())

    async def refresh_pods(self) -> Sequence[RunningPod]:
        """Calls the runtime."""
        return self._remember(await self._runtime.refresh_pods())

    async def reread_pod(self, live: RunningPod) -> RunningPod | None:
        """Calls the runtime."""
        return await self._runtime.reread_pod(live)

    async def ping(self) -> None:
        """Calls the runtime."""
        await self._runtime.ping()

    def kill_seconds(self, containers: int) -> float:
        """Calls the runtime."""
        return self._runtime.kill_seconds(containers)

    def reserve_stop(self) -> float:
        """Refused."""
        raise _refuse("stop a container")

    async def run_hook(self, live: RunningPod, container: str, hook: LifecycleHandler, limit: float) -> HookResult:
        """Refused."""
        raise _refuse("run a preStop hook")

    async def stop_container(self, container_id: str, grace: float) -> int | None:
        """Refused."""
        raise _refuse("stop a container")

    async def kill_container(self, container_id: str) -> None:
        """Refused."""
        raise _refuse("kill a container")

    async def forget_container(self, container_id: str) -> None:
        """Refused."""
        raise _refuse("remove a container")

    async def tear_down_pod(self, live: RunningPod) -> None:
        """Refused."""
        raise _refuse("remove a sandbox")

    def _remember(self, pods: Sequence[RunningPod]) -> Sequence[RunningPod]:
        self.pods |= {live.pod.metadata.uid: live for live in pods}
        return pods


class ReadOnlyNode:
    """``ports.node.NodeFace`` of a node that is not told of the drill."""

    def refuse_pods(self) -> None:
        """Refused."""
        raise _refuse("refuse pods")

    async def begin_shutdown(self, deadline: float) -> None:
        """Refused."""
        raise _refuse("announce a shutdown")

    def expect_pods(self, namespaces: Iterable[str]) -> None:
        """Refused."""
        raise _refuse("expect the end of pods")

    async def wait_until_prepared(self, live: RunningPod, until: Callable[[], float]) -> ApplicationReadiness | None:
        """Refused."""
        raise _refuse("wait for an application")

    async def begin_pod(self, live: RunningPod, grace: float, until: float) -> bool:
        """Refused."""
        raise _refuse("announce a pod's end")

    async def report_pod_ended(self, live: RunningPod, exit_codes: dict[str, int | None]) -> bool:
        """Refused."""
        raise _refuse("report a pod's end")

    async def report_finished(self) -> None:
        """Refused."""
        raise _refuse("report a shutdown's end")

    def take_notes(self) -> Sequence[str]:
        """None: nothing is done."""
        return ()

    async def clean_up(self, last: ShutdownRecord | None) -> None:
        """Refused."""
        raise _refuse("clean up")

    async def mark_ready(self) -> None:
        """Refused."""
        raise _refuse("start the kubelet")


class NoJournals:
    """``ports.node.Journals`` without a disk: a drill leaves no report behind."""

    def create(self, shutdown_id: str) -> JournalFile:
        """A journal that is not kept."""
        return _NoJournal()

    def latest(self) -> tuple[str, list[bytes]] | None:
        """None: an earlier shutdown is no part of a drill."""
        return None

    def reopen(self, shutdown_id: str) -> JournalFile:
        """A journal that is not kept."""
        return _NoJournal()

    async def write_kubelet_state(self, start: float | None, end: float | None) -> None:
        """Writes nothing."""


class _NoJournal:
    def append(self, line: bytes) -> None:
        """Writes nothing."""

    async def sync(self) -> None:
        """Writes nothing."""
