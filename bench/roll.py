"""Nodes are emptied one after the other behind real proxies that are late: by kubectl drain, and by lastcall drain.

kubectl drains without a sleep in front of SIGTERM, and once with the sleep of the learnt length.

Five nodes of a lab, each with a proxy of its own: Envoy, HAProxy or nginx, which follows the EndpointSlices up to eight
seconds late. 300 requests a second go through all proxies in turn, half of them on kept connections. The budget is
watched by kubectl.
"""

import asyncio
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.traffic.traffic_rig import TrafficRig, missing_proxies

NAME = "roll"
WATCHED = "lastcall drain, with that sleep"
HEAD = ["run", "nodes emptied by", "requests", "failed", "healthy pods at least", "budget", "seconds", "verdict"]
DELAYS = (8, 6, 4, 2, 0)
"""Seconds by which the proxy of each node is late."""
REPLICAS, LEAST, RATE = 6, 4, 300


@dataclass(frozen=True)
class RollRow:
    """A line of the table: all nodes, once."""

    run: int
    by: str
    watched: bool
    found: object
    budget: int

    @property
    def met(self):
        """By lastcall drain no request fails, and the budget is kept; for kubectl there is no target."""
        return (not self.found.lost and self.found.least >= self.budget) if self.watched else None

    def cells(self):
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        found = self.found
        counts = [f"{found.sent:,}", f"{len(found.lost):,}", str(found.least), str(self.budget)]
        return [str(self.run), self.by, *counts, f"{found.seconds:.0f}", verdict]


class Roll:
    """``turns`` times both, on one lab; ``told`` says what was learnt, ``left_out`` why there is nothing."""

    def __init__(self, *, quick, turns, tell):
        self._delays = (1, 0) if quick else DELAYS
        self._turns, self._tell, self._quick = turns, tell, quick
        self.left_out, self.told = [], []

    async def rows(self):
        if missing := missing_proxies():
            self.left_out.append(f"{NAME}: not installed: {', '.join(missing)}")
            return []
        directory = Path(tempfile.mkdtemp(prefix="lastcall-bench-"))
        directory.chmod(0o755)
        sizes = {"replicas": 3, "least": 2, "rate": 50} if self._quick else {}
        rig = TrafficRig(
            directory, delays=self._delays, **({"replicas": REPLICAS, "least": LEAST, "rate": RATE} | sizes)
        )
        try:
            async with rig.up():
                return await self._play(rig)
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    async def _play(self, rig):
        bare = [await self._roll(rig, turn + 1, "kubectl drain", rig.drain_by_kubectl) for turn in range(self._turns)]
        seconds = await rig.hold_by_policy()
        self.told.append(f"roll: the learnt settle time has pods sleep {seconds} s")
        held = await self._roll(rig, 1, "kubectl drain, with that sleep", rig.drain_by_kubectl)
        watched = [await self._roll(rig, turn + 1, WATCHED, rig.drain_by_lastcall) for turn in range(self._turns)]
        return [*bare, held, *watched]

    async def _roll(self, rig, turn, by, empty):
        self._tell(f"{NAME}: all nodes by {by}, {turn}")
        return RollRow(turn, by, by == WATCHED, await rig.roll(empty, rig.nodes), rig.least)
