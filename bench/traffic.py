"""Requests that are lost while a node of the lab goes down: with the wait for traffic and without it, in turn.

200 requests a second, half of them on kept connections, to a Service of four pods on two nodes, of which one goes down.
"""

import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.lab.shop import shut_down_in_use

NAME = "traffic"
HEAD = ["run", "requests", "lost: SIGTERM waits", "requests", "lost: no wait", "verdict"]
RUNS = 5
LIMIT = 5
"""Seconds that a SIGTERM may wait for its Services (traffic.limitSeconds)."""


@dataclass(frozen=True)
class TrafficRow:
    """One run of each; the target is that no request is lost with the wait."""

    number: int
    sent: int
    lost: int
    sent_without: int
    lost_without: int

    @property
    def met(self):
        return self.lost == 0

    def cells(self):
        verdict = "met" if self.met else "MISSED"
        return [
            *map(str, (self.number, self.sent, self.lost, self.sent_without, self.lost_without)),
            verdict,
        ]


class Traffic:
    """``tell`` hears of the progress."""

    def __init__(self, *, quick, tell):
        self._runs = 1 if quick else RUNS
        self._tell = tell

    async def rows(self):
        return [await self._row(number) for number in range(1, self._runs + 1)]

    async def _row(self, number):
        found = []
        for limit in (LIMIT, 0):
            self._tell(f"traffic: {'with' if limit else 'without'} the wait, {number} of {self._runs}")
            load = await _played(limit)
            assert load.sent == load.answered + len(load.lost)
            found += [load.sent, len(load.lost)]
        return TrafficRow(number, *found)


async def _played(limit):
    directory = Path(tempfile.mkdtemp(prefix="lc-bench-"))
    try:
        return await shut_down_in_use(directory, limit)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
