"""``kubectl logs`` of containers behind the CRI."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from lastcall_lab.processes.log_file import read_some


class CriLog:
    """A log in the CRI's format: time, stream, F for a whole line or P for a part of one, text."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def read(self, position: int) -> tuple[Sequence[tuple[float, bytes]], int]:
        """Whole lines from ``position`` on, a limited number at a time."""
        return await asyncio.to_thread(self._read_lines, position)

    def _read_lines(self, position: int) -> tuple[list[tuple[float, bytes]], int]:
        data = read_some(self._path, position)
        whole = data[: data.rfind(b"\n") + 1]
        lines = []
        for line in whole.splitlines(keepends=True):
            at, _, rest = line.partition(b" ")
            _, tags, text = rest.split(b" ", 2)
            said = datetime.fromisoformat(at.decode()).timestamp()
            lines.append((said, text if tags.startswith(b"F") else text.rstrip(b"\n")))
        return lines, position + len(whole)
