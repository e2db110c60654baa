"""Identifies processes that are not our children, and never confuses them with later ones of the same pid."""

import contextlib
import os
import select
import signal
from pathlib import Path
from typing import NamedTuple, Self

from lastcall.errors import NotPermitted


class ProcessIdentity(NamedTuple):
    """A pid and its start time (clock ticks since boot). A pid is reused; the pair is not, within one boot."""

    pid: int
    start: int


def parse_identity(stat: str) -> ProcessIdentity | None:
    """Parses a line of ``/proc/PID/stat`` (proc(5)); None if the text is incomplete.

    The second field is the program's name in brackets and may hold anything, so the last bracket counts.
    """
    head, bracket, rest = stat.rpartition(")")
    fields = rest.split()
    if not bracket or not stat.endswith("\n") or len(fields) < 20:
        return None
    return ProcessIdentity(int(head.split(" ", 1)[0]), int(fields[19]))


class ForeignProcess:
    """One process, held by a pidfd; it need not be our child."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.descriptor = descriptor

    @classmethod
    def from_pid(cls, pid: int) -> Self:
        """The current process of this pid; ProcessLookupError without one. Reliable for a child before it is reaped."""
        return cls(pid, os.pidfd_open(pid))

    @classmethod
    def find(cls, wanted: ProcessIdentity) -> Self | None:
        """Finds the process with this identity; None if it is gone."""
        try:
            process = cls.from_pid(wanted.pid)
        except ProcessLookupError:
            return None
        # Read after opening the descriptor: if the identity matches now, the descriptor is of that process.
        if _current_identity(wanted.pid) == wanted:
            return process
        process.close()
        return None

    @property
    def has_ended(self) -> bool:
        """Whether it is dead, reaped or not."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal; ignored if the process is gone. NotPermitted if it has become another user's."""
        try:
            signal.pidfd_send_signal(self.descriptor, number)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise NotPermitted(f"process {self.pid} runs as another user: it cannot be sent {number.name}") from error

    def reap(self) -> None:
        """Reaps a dead process if it is our child; otherwise its parent does so."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)

    def close(self) -> None:
        """Closes the descriptor. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def kill_marked(variable: str) -> None:
    """Sends SIGKILL to every process with this variable (``NAME=value``) in its initial environment.

    It scans all processes of the machine: use it only if nothing else identifies them.
    """
    killed: set[int] = set()
    while found := _kill_marked(variable.encode(), killed):  # a child may have been forked meanwhile
        killed |= found


def _kill_marked(variable: bytes, killed: set[int]) -> set[int]:
    found = set()
    for pid in {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()} - killed:
        with contextlib.suppress(OSError, NotPermitted):  # gone, or another user's
            process = ForeignProcess.from_pid(pid)
            with contextlib.closing(process):
                if variable in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    process.send_signal(signal.SIGKILL)
                    found.add(pid)
    return found


def _current_identity(pid: int) -> ProcessIdentity | None:
    try:
        return parse_identity(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None
