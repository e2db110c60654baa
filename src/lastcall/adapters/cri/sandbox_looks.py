"""Looks at which containers run in a sandbox; pods that end together share one call to the runtime."""

import asyncio
import contextlib
from collections.abc import Sequence

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.cri.connection import CriConnection
from lastcall.aio import OrderedTaskGroup, wait_any
from lastcall.errors import Unavailable


class SandboxLooks:
    """One call at a time. Whoever asks while one is under way shares the next one, which begins after it."""

    def __init__(self, connection: CriConnection) -> None:
        self._connection = connection
        self._calls = OrderedTaskGroup()
        self._current: asyncio.Task[Sequence[cri.Container]] | None = None
        self._next: asyncio.Task[Sequence[cri.Container]] | None = None
        self._asked: set[str] = set()

    async def running_containers(self, sandbox: str) -> Sequence[cri.Container]:
        """The containers that run in the sandbox, by a call that begins after this one. Raises Unavailable."""
        self._asked.add(sandbox)
        if self._next is None:
            self._next = self._calls.start(self._list_containers(self._current), "look into sandboxes")
            self._next.add_done_callback(_retrieve_error)
        return [one for one in await asyncio.shield(self._next) if one.pod_sandbox_id == sandbox]

    async def wait_until_over(self) -> None:
        """Waits for the calls under way, which end when their connection is closed; drops their errors."""
        with contextlib.suppress(Unavailable):
            await self._calls.join()

    async def _list_containers(self, before: "asyncio.Task[Sequence[cri.Container]] | None") -> Sequence[cri.Container]:
        if before:
            await wait_any(before)
        self._current, self._next = self._next, None
        asked, self._asked = self._asked, set()
        running = cri.ContainerStateValue(state=cri.CONTAINER_RUNNING)
        only = asked.pop() if len(asked) == 1 else ""  # the runtime takes "" for any
        wanted = cri.ListContainersRequest(filter=cri.ContainerFilter(pod_sandbox_id=only, state=running))
        containers: Sequence[cri.Container] = (await self._connection.call("ListContainers", wanted)).containers
        return containers


def _retrieve_error(look: "asyncio.Task[Sequence[cri.Container]]") -> None:
    """Those that asked may be cancelled by now, and asyncio logs errors that nobody retrieves."""
    if not look.cancelled():
        look.exception()
