"""Connections to the Redis servers of an application, with passwords and TLS, and what these say of their replication."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, TypeVar

from msgspec import Meta
from msgspec.structs import replace

from lastcall.adapters.guard.member_tls import MemberTlsSettings, connect_with_tls
from lastcall.adapters.guard.redis_state import MASTER, REPLICA, Replication, parse_info
from lastcall.adapters.guard.resp import RedisConnection, RedisError
from lastcall.adapters.guard.settings import Port, SecretSource, TimeoutSeconds
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.pods import Pod
from lastcall.ports.guard import NamespaceAccess

SENTINELS = "__sentinel__:hello"
"""The channel by which Sentinels know of each other: each subscribes to it at every member."""

Username = Annotated[str, Meta(max_length=256)]
A = TypeVar("A")


class RedisMemberSettings(MemberTlsSettings, frozen=True):
    """How Redis is reached."""

    port: Port = 6379
    username: Username = ""
    password_secret: SecretSource | None = None
    """Key ``password``."""
    tls: bool = False
    """Whether the port speaks TLS (``tls-port``)."""
    timeout_seconds: TimeoutSeconds = 3

    def list_violations(self) -> Iterator[str]:
        """What counts with TLS alone."""
        if not self.tls:
            yield from self.list_unused("tls: true")


@dataclass(frozen=True)
class RedisLogin:
    """The user; none without a Secret, and ``default`` without a name."""

    username: str
    source: SecretSource | None


class RedisDoor:
    """Connects to one port of pods. ``title`` is what listens there."""

    def __init__(
        self, access: NamespaceAccess, settings: RedisMemberSettings, port: int, login: RedisLogin, title: str
    ) -> None:
        self._access = access
        self._settings = settings
        self._port = port
        self._login = login
        self._title = title

    @asynccontextmanager
    async def connect(self, pod: Pod) -> AsyncIterator[RedisConnection]:
        """A connection that has logged in. Errors as of ``NamespaceAccess.connect``; LastcallError if it is refused."""
        if self._settings.tls:
            stream = await connect_with_tls(self._access, pod, self._port, self._settings)
        else:
            stream = await self._access.connect(pod, self._port)
        redis = RedisConnection(stream, f"{self._title} of pod {pod.key}", float(self._settings.timeout_seconds))
        try:
            await self._authenticate(redis)
            yield redis
        finally:
            redis.close()

    async def _authenticate(self, redis: RedisConnection) -> None:
        source = self._login.source
        if source is None:
            return
        password = await self._access.read_secret(source.name, source.key or "password")
        words = ("AUTH", self._login.username, password) if self._login.username else ("AUTH", password)
        try:
            await redis.call(*words)
        except RedisError as error:
            raise LastcallError(f"the password of Secret {source.name} is refused: {error}") from error


class RedisMembers:
    """The servers themselves."""

    def __init__(self, settings: RedisMemberSettings, access: NamespaceAccess) -> None:
        login = RedisLogin(settings.username, settings.password_secret)
        self._door = RedisDoor(access, settings, settings.port, login, "Redis")

    @asynccontextmanager
    async def connect(self, pod: Pod) -> AsyncIterator[RedisConnection]:
        """As ``RedisDoor.connect``."""
        async with self._door.connect(pod) as redis:
            yield redis

    async def read_all(self, pods: Sequence[Pod]) -> list[tuple[Pod, Replication | str]]:
        """What each says of itself, or why it says nothing; all are asked at the same time."""
        return await ask_all(pods, self.read_pod)

    async def read_pod(self, pod: Pod) -> Replication:
        """What one says of itself."""
        async with self.connect(pod) as redis:
            return await read_view(redis)


async def read_view(redis: RedisConnection) -> Replication:
    """What the server says of its replication. LastcallError if that is not understood."""
    parts = [str(await redis.call("INFO", section)) for section in ("replication", "server", "cluster")]
    view = parse_info("\n".join(parts))
    if view.role not in (MASTER, REPLICA) and not view.is_sentinel:
        raise LastcallError(f"what it says of its replication is not understood: role {view.role!r}")
    if view.is_sentinel:
        return view
    watchers = await redis.call("PUBSUB", "NUMSUB", SENTINELS)
    return replace(view, is_watched=isinstance(watchers, list) and watchers[1:2] not in ([], [0]))


async def ask_all(pods: Sequence[Pod], ask: Callable[[Pod], Awaitable[A]]) -> list[tuple[Pod, A | str]]:
    """The answer of each pod, or why it says nothing; all are asked at the same time. Other errors are raised."""
    answers = await asyncio.gather(*(ask(pod) for pod in pods), return_exceptions=True)
    found: list[tuple[Pod, A | str]] = []
    for pod, answer in zip(pods, answers, strict=True):
        if isinstance(answer, (Unavailable, TimedOut)):
            found.append((pod, str(answer)))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.append((pod, answer))
    return found
