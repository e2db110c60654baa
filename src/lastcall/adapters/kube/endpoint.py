"""The address of a server, and the limits on time and size of its answers."""

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lastcall.errors import InvalidInput


@dataclass(frozen=True)
class ServerEndpoint:
    """A server's address and how it is verified. ``authority`` is PEM text; without one the system's CAs count."""

    host: str
    port: int
    secure: bool = True
    prefix: str = ""
    authority: str = field(default="", repr=False)
    insecure: bool = False
    server_name: str = ""
    """The name in the server's certificate, if it differs from ``host``."""

    @classmethod
    def from_url(
        cls, url: str, *, authority: str = "", insecure: bool = False, server_name: str = ""
    ) -> "ServerEndpoint":
        """From ``https://host[:port][/prefix]`` or ``http://``; InvalidInput for anything else."""
        parts = urlsplit(url if "://" in url else f"https://{url}")
        try:
            port = parts.port
        except ValueError as error:
            raise InvalidInput("the server's URL", [f"{url!r}: {error}"]) from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise InvalidInput("the server's URL", [f"{url!r}: must be https://host[:port][/path]"])
        secure = parts.scheme == "https"
        return cls(
            parts.hostname,
            port or (443 if secure else 80),
            secure=secure,
            prefix=parts.path.rstrip("/"),
            authority=authority,
            insecure=insecure,
            server_name=server_name,
        )

    @property
    def netloc(self) -> str:
        """Host and port in the form of URLs and the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class TransportLimits:
    """Seconds and bytes: to connect (TLS included), until the head of an answer, between two parts of a whole body."""

    connect: float = 10.0
    answer: float = 60.0
    inactivity: float = 30.0
    body: int = 256 * 1024 * 1024
    connections: int = 64
    """Requests under way at once; further ones wait. Streams do not count."""
    urgent: int = 8
    """The same limit for urgent requests, which have connections of their own."""
