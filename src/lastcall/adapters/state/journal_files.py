"""Journals as files: one line of JSON for each event, one file for each shutdown, in ``<state-dir>/shutdowns``."""

import asyncio
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.state.directory import (
    close_to_others,
    explain_error,
    make_writable,
    refuse_kubelet_directory,
    replace_file,
    sync_directory,
)
from lastcall.errors import InvalidInput
from lastcall.model.shutdown import ShutdownStarted, from_lines
from lastcall.names import KUBELET_STATE_FILE

_ID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,98}[A-Za-z0-9])?")
_NEVER = "0001-01-01T00:00:00Z"
"""Go's encoding of the zero time."""


class JournalFiles:
    """``ports.node.Journals`` in a state directory, which keeps the newest ``keep`` journals.

    Journals of this boot (the kernel's, or ``boot``) are newer than all others; their order is that of their boottimes,
    because that clock cannot be set. The order of the others is that of their last changes. Raises RefusedForSafety if
    the state directory is the kubelet's. Errors of the operating system are OSErrors, so that a shutdown can continue
    without a journal; ``prepare`` explains them while there is still time to fix them.
    """

    def __init__(self, state_dir: Path, keep: int = 20, *, boot: str = "") -> None:
        refuse_kubelet_directory(state_dir)
        self._state_dir = state_dir
        self._directory = state_dir / "shutdowns"
        self._keep = keep
        self._boot = boot or boot_id()

    def prepare(self) -> None:
        """Creates the directories and tries to write there. NotPermitted or LastcallError names the path."""
        make_writable(self._state_dir)
        close_to_others(self._state_dir)
        make_writable(self._directory)

    def create(self, shutdown_id: str) -> "JournalLines":
        """Creates a new, empty journal and removes the oldest ones. Raises FileExistsError if the id exists."""
        path = self._journal_path(shutdown_id)
        for directory in (self._state_dir, self._directory):  # parents that mkdir makes do not get our mode
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_oldest(self._keep - 1)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return JournalLines(descriptor, path)

    def reopen(self, shutdown_id: str) -> "JournalLines":
        """Opens a journal to continue it; first removes an incomplete last line. FileNotFoundError if there is none."""
        path = self._journal_path(shutdown_id)
        lines = JournalLines(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), path)
        os.truncate(path, path.read_bytes().rfind(b"\n") + 1)
        return lines

    def list_ids(self) -> list[str]:
        """The ids of the known shutdowns, newest first. A LastcallError explains why they cannot be listed."""
        try:
            return [path.stem for path in self._journal_paths()]
        except OSError as error:
            raise explain_error(error, self._directory) from error

    def read_lines(self, shutdown_id: str) -> list[bytes]:
        """The complete lines of a journal, without an incomplete last one. A LastcallError explains a failure."""
        path = self._journal_path(shutdown_id)
        try:
            return _whole_lines(path)
        except OSError as error:
            raise explain_error(error, path) from error

    def latest(self) -> tuple[str, list[bytes]] | None:
        """Id and complete lines of the newest journal."""
        files = self._journal_paths()
        return (files[0].stem, _whole_lines(files[0])) if files else None

    async def write_kubelet_state(self, start: float | None, end: float | None) -> None:
        """Writes the kubelet's state format (pkg/kubelet/nodeshutdown/storage.go) beside our journals, atomically.

        Wall-clock seconds; None is Go's zero time. The file is on the disk on return.
        """
        state = {"startTime": _go_time(start), "endTime": _go_time(end)}
        path = self._state_dir / KUBELET_STATE_FILE
        await asyncio.to_thread(replace_file, path, msgspec.json.encode(state))

    def _journal_path(self, shutdown_id: str) -> Path:
        if not _ID.fullmatch(shutdown_id):
            rule = "a shutdown's id is of at most 100 letters, digits, '-', '_' and '.', the first and last no sign"
            raise InvalidInput("shutdown", [f"id: {shutdown_id!r}: {rule}"])
        return self._directory / f"{shutdown_id}.jsonl"

    def _journal_paths(self) -> list[Path]:
        """The journals, newest first; none if the directory does not exist."""
        try:
            paths = [path for path in self._directory.iterdir() if path.suffix == ".jsonl" and _ID.fullmatch(path.stem)]
        except FileNotFoundError:
            return []
        return sorted(paths, key=self._age_key, reverse=True)

    def _age_key(self, path: Path) -> tuple[float, int, str]:
        return _start_time(path, self._boot), _modification_time(path), path.stem

    def _remove_oldest(self, keep: int) -> None:
        for path in self._journal_paths()[keep:]:
            with suppress(OSError):  # a leftover old journal must not prevent a new one
                path.unlink()


class JournalLines:
    """``ports.node.JournalFile``: appends whole lines to a file, with one write each."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._written = 1  # counts changes; the first is the file itself, whose name must be synced too
        self._synced = 0
        self._flight: asyncio.Task[None] | None = None

    def append(self, line: bytes) -> None:
        """Writes a line to the kernel. On OSError no part of it stays, so that later lines are readable."""
        before = os.fstat(self._descriptor).st_size
        try:
            rest = line
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            os.ftruncate(self._descriptor, before)
            raise
        self._written += 1

    async def sync(self) -> None:
        """Syncs to the disk. Callers that come while the disk is busy share the next sync."""
        wanted = self._written
        while self._synced < wanted:
            if self._flight is None:
                self._flight = asyncio.create_task(self._sync_once(), name="journal to disk")
            await asyncio.shield(self._flight)

    def close(self) -> None:
        """Closes the file; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()  # the port has no close: dropping the last reference closes the file

    async def _sync_once(self) -> None:
        reached, first = self._written, self._synced == 0
        try:
            await asyncio.to_thread(_flush_to_disk, self._descriptor, self._path.parent if first else None)
            self._synced = reached
        finally:
            self._flight = None


def _flush_to_disk(descriptor: int, directory: Path | None) -> None:
    os.fdatasync(descriptor)
    if directory:
        sync_directory(directory)
        sync_directory(directory.parent)


def _whole_lines(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


def _start_time(path: Path, boot: str) -> float:
    """The start as CLOCK_BOOTTIME seconds if the shutdown is of this boot; else less than any boottime."""
    try:
        with path.open("rb") as file:
            events = from_lines([file.readline()])
    except (OSError, ValueError):  # readers of the journal report its errors
        return -1.0
    started = events[0] if events else None
    return started.at if isinstance(started, ShutdownStarted) and started.boot_id == boot else -1.0


def _modification_time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # another process has just removed it
        return 0


def _go_time(seconds: float | None) -> str:
    if seconds is None:
        return _NEVER
    text = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") + "Z"
