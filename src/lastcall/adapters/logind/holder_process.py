"""The holder process from the side of its parent, or of a later process: start, find, request, end."""

import asyncio
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from lastcall.adapters.logind import lock_holder
from lastcall.aio import timeout

ANSWER_SECONDS = 1.0
"""Seconds after which a holder without an answer counts as hung."""

_GLANCE_SECONDS = 0.02
"""Seconds between two checks for a listener."""

_SOCKET = "lock-holder.sock"
_PROGRAM = Path(lock_holder.__file__).resolve()
_SPARE = 10
"""Above the descriptors that the holder expects, so that placing one there does not close another."""


class HolderProcess:
    """A process that holds a copy of the lock.

    ``descriptor`` is its pidfd. It is None if the holder runs in another pid namespace, or could not be identified, for
    instance while it starts or ends.
    """

    def __init__(self, directory: Path, descriptor: int | None) -> None:
        self._directory = directory
        self._pidfd: int | None = None
        self._ended = asyncio.Event()
        self._on_end: Callable[[], None] | None = None
        if descriptor is not None:
            self._watch_pidfd(descriptor)

    @classmethod
    def start(cls, directory: Path, lock: int, *, deadline: float, patience: float) -> Self:
        """Starts a holder. On return it has its copy of ``lock``; it answers some milliseconds later.

        It has its own session, so that neither a terminal nor a service manager's stop of our process group ends it. It
        inherits only the lock and the socket. Raises OSError if it cannot be started.
        """
        with _SocketPath(directory) as place, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            os.fchmod(listener.fileno(), 0o600)  # before bind(): the socket never exists with wider permissions
            place.remove_stale()
            listener.bind(place.path)
            listener.listen(8)
            pid = _spawn_holder(lock, listener.fileno(), [repr(deadline), repr(patience), str(os.getpid())])
            return cls(directory, os.pidfd_open(pid))

    @classmethod
    def find(cls, directory: Path) -> Self | None:
        """Finds the holder of an earlier process; None if there is none, or if it is about to end."""
        descriptor = None
        try:
            with _connect_holder(directory) as client:
                descriptor = _pidfd_of(client)
                if _is_connected(client):
                    return cls(directory, descriptor)
        except OSError:
            pass
        if descriptor is not None:
            os.close(descriptor)
        return None

    @property
    def has_ended(self) -> bool:
        """Whether the holder has certainly ended, and its copy of the lock is closed."""
        return self._ended.is_set()

    def set_end_callback(self, callback: Callable[[], None]) -> None:
        """``callback`` is called when the process has ended."""
        self._on_end = callback

    async def ask(self, request: str, descriptors: Sequence[int] = ()) -> tuple[bytes, list[int]]:
        """Sends a request and returns the answer (table in lock_holder). Raises OSError or TimeoutError without one."""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        async with timeout(ANSWER_SECONDS):
            with _connect_holder(self._directory) as client:
                socket.send_fds(client, [request.encode()], descriptors)
                loop.add_reader(client, readable.set)
                try:
                    await readable.wait()
                    return lock_holder.receive_packet(client)
                finally:
                    loop.remove_reader(client)

    def is_identified(self) -> bool:
        """Whether the process is certainly known, or known to have ended; looks again if it was not.

        Without a pidfd it has ended when no process accepts connections on its socket, because only its end closes the
        socket. So call this only while no other holder has taken its place.
        """
        if self._pidfd is None and not self.has_ended:
            try:
                with _connect_holder(self._directory) as client:
                    descriptor = _pidfd_of(client)
                if descriptor is not None:
                    self._watch_pidfd(descriptor)
            except (ConnectionRefusedError, FileNotFoundError):
                self._handle_end()
            except OSError:
                pass  # a full queue proves a listener
        return self._pidfd is not None or self.has_ended

    async def wait(self) -> bool:
        """Waits a short time for its end; False if it has not ended."""
        try:
            async with timeout(ANSWER_SECONDS):
                while not self.is_identified():  # # noqa: ASYNC110  (a listener's start and end raise no event)
                    await asyncio.sleep(_GLANCE_SECONDS)
                await self._ended.wait()
        except TimeoutError:
            return False
        return True

    async def kill(self) -> bool:
        """Sends SIGKILL; True when its copy of the lock is closed. False if it is not ``is_identified``."""
        if self._pidfd is not None:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            await self._ended.wait()
        return self.has_ended

    def _watch_pidfd(self, descriptor: int) -> None:
        self._pidfd = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._handle_end)

    def _handle_end(self) -> None:
        """The pidfd has become readable, or the socket has no listener: the process has ended."""
        if self.has_ended:
            return
        if self._pidfd is not None:
            self._reap_process(self._pidfd)
            self._pidfd = None
        self._ended.set()
        if self._on_end:
            self._on_end()

    @staticmethod
    def _reap_process(pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        try:
            os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            pass  # not our child, or another wait has reaped it
        os.close(pidfd)


class _SocketPath:
    """The socket's path, kept short however long the directory's is (unix(7): 107 bytes at most)."""

    def __init__(self, directory: Path) -> None:
        self._directory = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self.path = f"/proc/self/fd/{self._directory}/{_SOCKET}"

    def remove_stale(self) -> None:
        """Removes a socket without a listener."""
        try:
            os.unlink(_SOCKET, dir_fd=self._directory)
        except FileNotFoundError:
            pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._directory)


def _connect_holder(directory: Path) -> socket.socket:
    """A connection to the holder; OSError if none listens."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        with _SocketPath(directory) as place:
            client.connect(place.path)
    except BaseException:
        client.close()
        raise
    return client


def _spawn_holder(lock: int, listener: int, arguments: list[str]) -> int:
    """Returns the pid. Uses posix_spawn: a process of asyncio's subprocess may be killed with its transport."""
    sources = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _SPARE) for descriptor in (lock, listener)]
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_PROGRAM), *arguments],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
                (os.POSIX_SPAWN_DUP2, 0, 1),
                (os.POSIX_SPAWN_DUP2, 0, 2),
                (os.POSIX_SPAWN_DUP2, sources[0], lock_holder.LOCK),
                (os.POSIX_SPAWN_DUP2, sources[1], lock_holder.LISTENER),
            ],
            setsid=True,
        )
    finally:
        for descriptor in sources:
            os.close(descriptor)


def _pidfd_of(client: socket.socket) -> int | None:
    """The pidfd of the process at the other end, or None if it is uncertain.

    While the connection is open, the holder lives and its pid is its own; the kernel reports the process that called
    listen(). Before the holder has called it, that is its dead parent: hence the check of its command line.
    """
    pid, _ = lock_holder.peer_credentials(client)
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        if str(_PROGRAM).encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") and _is_connected(client):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _is_connected(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
