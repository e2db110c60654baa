"""The output of a container, with approximate times."""

import asyncio
import bisect
import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from lastcall.ports.node import Clock

_CHUNK = 256 * 1024


class LogFile:
    """One container's output by lines.

    ``<log>.times`` has the times: up to which offset it had been written at which second since 1970.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    async def read(self, position: int) -> tuple[Sequence[tuple[float, bytes]], int]:
        """Lines from ``position`` on with their times, a limited number at a time, and the next position.

        Incomplete last lines come when nothing else is left. Without such a log there are no lines.
        """
        return await asyncio.to_thread(self._read, position)

    def _read(self, position: int) -> tuple[list[tuple[float, bytes]], int]:
        data = read_some(self._path, position)
        whole = data[: data.rfind(b"\n") + 1] or data
        ends, times = self._times()
        lines = []
        for line in whole.splitlines(keepends=True):
            index = bisect.bisect_right(ends, position)
            lines.append((times[index] if index < len(times) else self._clock.wall(), line))
            position += len(line)
        return lines, position

    def _times(self) -> tuple[list[int], list[float]]:
        noted = _read_times(self._path)
        return [end for end, _ in noted], [at for _, at in noted]


def read_some(log: Path, position: int) -> bytes:
    """Reads a limited part from ``position`` on; empty if there is no such file."""
    try:
        with log.open("rb") as file:
            file.seek(position)
            return file.read(_CHUNK)
    except FileNotFoundError:
        return b""


def note_times(logs: Iterable[Path], now: float) -> None:
    """Notes ``now`` as the time of the output since the last note."""
    for log in logs:
        with contextlib.suppress(FileNotFoundError):
            size = log.stat().st_size
            if size > max((end for end, _ in _read_times(log)), default=0):
                with _times_path(log).open("a", encoding="ascii") as file:
                    file.write(f"{size} {now:.3f}\n")


def _read_times(log: Path) -> list[tuple[int, float]]:
    """Reads the offsets and their times."""
    try:
        lines = _times_path(log).read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return []
    return [(int(end), float(at)) for end, _, at in (line.partition(" ") for line in lines)]


def _times_path(log: Path) -> Path:
    return log.with_name(f"{log.name}.times")
