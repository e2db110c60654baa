"""Keeps the specs of the node's pods in the state directory, for a start while the API server is unavailable."""

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from lastcall.adapters.state.directory import replace_file
from lastcall.model.pod_checkpoint import MOST_BYTES, decode_checkpoint, encode_checkpoint
from lastcall.model.pods import Pod
from lastcall.model.shutdown import JournalEvent, ShutdownStarted
from lastcall.ports.node import Clock

NAME = "pods.json"

SETTLE_SECONDS = 5.0
"""Seconds between a change and the write: a rollout changes many pods at once."""

QUIET_SECONDS = 30.0
"""Seconds after a shutdown's start without a write: the pods that end then need the disk and the processor."""

RETRY_SECONDS = 60.0
"""Seconds between a failed write and the next attempt."""

log = logging.getLogger(__name__)


class PodCheckpoint:
    """The file ``pods.json``, accessible to its owner only, and replaced atomically.

    ``run`` writes what ``pods`` returns, some time after each ``note_change``.
    """

    def __init__(self, state_dir: Path, clock: Clock, pods: Callable[[], Mapping[str, Pod]]) -> None:
        self._path = state_dir / NAME
        self._clock = clock
        self._list_pods = pods
        self._changed = asyncio.Event()
        self._quiet_until = 0.0
        self._written = b""
        self._told = ""

    def read(self) -> dict[str, Pod]:
        """The pods of the last write by ``runtime_uid``; logs why a file is not used, and returns none then. Blocks."""
        try:
            return read_checkpoint(self._path.parent)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            log.warning("the checkpoint of pods is not used: %s: %s", self._path, _reason(error))
        return {}

    def note_change(self) -> None:
        """Requests a write."""
        self._changed.set()

    def record_event(self, event: JournalEvent) -> None:
        """Postpones writes when a shutdown begins; a listener of the agent's events."""
        if isinstance(event, ShutdownStarted):
            self._quiet_until = self._clock.boottime() + QUIET_SECONDS

    async def run(self) -> None:
        """Writes after changes, without end. Logs a failure once, and retries."""
        while True:
            await self._changed.wait()
            await self._clock.sleep(SETTLE_SECONDS)
            while (left := self._quiet_until - self._clock.boottime()) > 0:
                await self._clock.sleep(left)
            self._changed.clear()
            if not await self._write(tuple(self._list_pods().values())):
                await self._clock.sleep(RETRY_SECONDS)
                self._changed.set()

    async def _write(self, pods: tuple[Pod, ...]) -> bool:
        try:
            left_out = await asyncio.to_thread(self._replace_if_changed, pods)
        except OSError as error:
            self._tell_once(f"the checkpoint of pods cannot be written: {self._path}: {_reason(error)}")
            return False
        self._tell_once(f"{left_out} pods do not fit into the checkpoint of pods" if left_out else "")
        return True

    def _replace_if_changed(self, pods: tuple[Pod, ...]) -> int:
        """Returns how many pods did not fit. Runs in a thread, because it waits for the disk."""
        data, left_out = encode_checkpoint(pods)
        if data != self._written:
            for leftover in self._path.parent.glob(f".tmp-{NAME}*"):  # of a process that was killed while it wrote
                leftover.unlink(missing_ok=True)
            replace_file(self._path, data)
            self._written = data
        return left_out

    def _tell_once(self, problem: str) -> None:
        if problem and problem != self._told:
            log.warning("%s", problem)
        self._told = problem


def read_checkpoint(state_dir: Path) -> dict[str, Pod]:
    """The pods of the checkpoint by ``runtime_uid``. Raises OSError, or ValueError if the file is not to be trusted."""
    return decode_checkpoint(_read_own_file(state_dir / NAME))


def _read_own_file(path: Path) -> bytes:
    """The content of a regular file that only its owner, this process's user, can write.

    Raises OSError or ValueError: a preStop hook of such a file runs, so nobody else may write one there.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("it is not a file")
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise ValueError("others than its owner, or another user, can write it")
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} bytes")
    return data


def _reason(error: OSError | ValueError) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
