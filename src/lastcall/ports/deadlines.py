"""Ports of the sources that announce that this machine goes down: metadata services and a power supply."""

from collections.abc import Mapping
from typing import Protocol

from lastcall.model.base import Facts


class MetadataAnswer(Facts, frozen=True):
    """An HTTP answer. ``date`` is the server's own time (its header Date), in seconds since 1970; None without one."""

    status: int
    body: bytes = b""
    date: float | None = None
    etag: str = ""


class MetadataService(Protocol):
    """A cloud's metadata service, on a link-local address of this machine."""

    async def request(
        self, method: str, path: str, headers: Mapping[str, str], *, body: bytes = b"", within: float
    ) -> MetadataAnswer:
        """One request. Unavailable if no whole answer comes within so many seconds, or one larger than 64 KiB."""
        ...


class PowerSupply(Protocol):
    """An uninterruptible power supply, as NUT knows it."""

    async def read_variables(self) -> Mapping[str, str]:
        """Its variables by name, such as ``ups.status``. Unavailable if they are not known now."""
        ...
