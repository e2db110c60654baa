"""Limits a node to one agent: a lock on a file in the state directory, which the kernel releases with its process."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from lastcall.adapters.state.directory import explain_error
from lastcall.errors import RefusedForSafety


class AgentLock:
    """The lock that makes a process the agent of a state directory; a context manager.

    The lock belongs to the open file (flock). No child process inherits it, since the descriptor is close-on-exec, and
    it ends with this process in any case.
    """

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / "agent.lock"
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Takes the lock. Raises RefusedForSafety, which names the process that holds it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise explain_error(error, self._path) from error
        try:
            self._close_to_others(descriptor)
            self._lock_file(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Releases the lock. The file stays: after a removal two agents could lock two files."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _close_to_others(self, descriptor: int) -> None:
        """Restricts access: a process that may open the file, even read-only, may lock it and block the agent."""
        owner = os.fstat(descriptor).st_uid
        if owner != os.geteuid():
            raise RefusedForSafety(
                f"{self._path} belongs to user {owner}, who could keep any agent from starting: remove it, or give "
                "lastcall a --state-dir of its own"
            )
        os.fchmod(descriptor, 0o600)

    def _lock_file(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        except BlockingIOError as error:
            pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise RefusedForSafety(
                f"another lastcall agent{f' (pid {pid})' if pid else ''} works with {self._path.parent}: two would end "
                "each other's pods. Stop it first, or give this one its own --state-dir"
            ) from error
        except OSError as error:
            raise explain_error(error, self._path) from error
