"""What the API server needs from the kubelet of a pod: logs and exec."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

STDOUT, STDERR = 1, 2


@dataclass(frozen=True)
class LogOptions:
    """``v1 PodLogOptions``; None means no limit. ``since`` in seconds since 1970."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: float | None = None
    limit_bytes: int | None = None


class ExecSession(Protocol):
    """A program that runs in a container."""

    async def write(self, data: bytes) -> None:
        """Writes to its standard input; drops what the program does not read."""
        ...

    def end_input(self) -> None:
        """Closes its standard input."""
        ...

    def resize(self, width: int, height: int) -> None:
        """Resizes its terminal, if it has one."""
        ...

    def output(self) -> AsyncIterator[tuple[int, bytes]]:
        """STDOUT or STDERR with the data from there, until both are closed."""
        ...

    async def wait(self) -> int:
        """Its exit code."""
        ...

    def kill(self) -> None:
        """Kills it at once."""
        ...


class KubeletApi(Protocol):
    """A kubelet as the API server reaches it. Unavailable if it does not respond."""

    def logs(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """Lines including their newlines. InvalidInput if the container does not exist."""
        ...

    async def execute(
        self, pod: Object, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> ExecSession:
        """Starts a program. InvalidInput if it cannot be started."""
        ...


Kubelets = Callable[[str], KubeletApi | None]
"""The kubelet of a node; None if the node does not exist."""


def choose_container(context: RequestContext, pod: Object) -> str:
    """The requested container, or the only one. ApiError if it is ambiguous or does not exist."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    names = [one["name"] for one in spec["containers"]]
    others = [one["name"] for one in [*(spec.get("initContainers") or ()), *(spec.get("ephemeralContainers") or ())]]
    asked = context.request.parameter("container")
    if asked:
        if asked not in names + others:
            raise api_errors.bad_request_error(f"container {asked} is not valid for pod {name}")
        return asked
    if len(names) == 1:
        return str(names[0])
    inits = f" or one of the init containers: [{' '.join(others)}]" if others else ""
    raise api_errors.bad_request_error(
        f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]{inits}"
    )
