"""The subresources that are more than a part of their object, and the resources that are only ever posted."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from lastcall.lab.apiserver.binding import Binding
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.eviction import Evictions
from lastcall.lab.apiserver.request import Response
from lastcall.lab.apiserver.streams import Streams

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

Handler = Callable[[Context], Awaitable[Response]]


def subresources(server: "ApiServer") -> Mapping[tuple[str, str], Handler]:
    """Who serves which: by qualified resource and subresource, which is empty for what is posted and never stored."""
    streams = Streams(server)
    evictions = Evictions(server)
    binding = Binding(server)
    return {
        ("bindings", ""): binding.create,
        ("pods", "binding"): binding.create,
        ("pods", "eviction"): evictions.create,
        ("pods", "log"): streams.log,
        ("pods", "exec"): streams.refuse,
        ("pods", "attach"): streams.refuse,
    }
