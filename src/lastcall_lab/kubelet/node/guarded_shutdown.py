"""What a lab node does for its guarded pods at its shutdown, as the agent does beside a kubelet.

The guard prepares the pods of a Node that is marked, and each of them waits for its application. A Node without guarded
pods is not marked.
"""

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from lastcall import names
from lastcall.aio import wait_first
from lastcall.errors import LastcallError
from lastcall.graceful.cluster.application_state import ApplicationState
from lastcall.model import decoding
from lastcall.model.pods import Pod
from lastcall.model.shutdown_node import ShutdownMark, read_mark
from lastcall.ports.node import ApplicationReadiness, Clock
from lastcall_lab.kubelet.node.kubelet import LabKubelet

RETRY_SECONDS = 1.0
"""Between two attempts to write or remove the mark."""


class GuardedShutdown:
    """The mark of one Node, and the waits of its pods. ``begin`` comes first."""

    def __init__(self, kubelet: LabKubelet, clock: Clock) -> None:
        self._kubelet = kubelet
        self._clock = clock
        self._applications = ApplicationState(self._find_pod, clock)
        self._deadline: float | None = None

    def begin(self, deadline: float) -> None:
        """A shutdown begins: the machine is gone at ``deadline`` (boottime)."""
        self._deadline = self._clock.wall() + deadline - self._clock.boottime()

    async def mark_node(self) -> None:
        """Records shutdown and deadline on the Node if one of its pods is guarded. LastcallError if that fails."""
        if self._deadline is not None and any(map(self._is_guarded, self._kubelet.pods.workers)):
            until = datetime.fromtimestamp(int(self._deadline), UTC)
            mark = ShutdownMark(boot_id=self._kubelet.profile.boot_id, cordoned=False, deadline=until)
            await self._annotate(msgspec.json.encode(mark).decode())

    async def wait_until_ready(self, uid: str, until: Callable[[], float]) -> ApplicationReadiness | None:
        """``ports.node.NodeFace.wait_until_prepared``."""
        if not self._is_guarded(uid):
            return None
        found: list[ApplicationReadiness | None] = []

        async def wait() -> None:
            found.append(await self._applications.wait_until_ready(uid, until))

        await wait_first(wait(), self._keep_mark())
        return found[0]

    async def unmark_node(self) -> None:
        """The shutdown is over: removes the mark if there is one. LastcallError if that fails."""
        self._deadline = None
        await self._annotate(None)

    async def remove_old_mark(self) -> None:
        """Removes the mark that a shutdown before this boot has left, as often as it takes; waits for the Node."""
        while True:
            metadata = self._kubelet.node.known["metadata"]
            mark = read_mark(metadata.get("annotations"))
            if "uid" in metadata and (mark is None or mark.boot_id == self._kubelet.profile.boot_id):
                return
            try:
                await (self._annotate(None) if mark else self._kubelet.node.changed.next())
            except LastcallError:
                await self._clock.sleep(RETRY_SECONDS)

    async def _keep_mark(self) -> None:
        """Never returns."""
        while True:
            try:
                await self.mark_node()
            except LastcallError:
                await self._clock.sleep(RETRY_SECONDS)
            else:
                await self._kubelet.node.changed.next()

    async def _annotate(self, text: str | None) -> None:
        annotations = self._kubelet.node.known["metadata"].get("annotations") or {}
        if annotations.get(names.NODE_SHUTDOWN_MARK) != text:
            await self._kubelet.node.write_annotation(names.NODE_SHUTDOWN_MARK, text)

    def _is_guarded(self, uid: str) -> bool:
        worker = self._kubelet.pods.workers.get(uid)
        status = (worker.record.pod.get("status") or {}) if worker else {}
        return any(one["type"] == names.GUARD_READY for one in status.get("conditions") or ())

    def _find_pod(self, uid: str) -> Pod | None:
        worker = self._kubelet.pods.workers.get(uid)
        return decoding.convert(worker.record.pod, Pod, "a pod of the API server") if worker else None
