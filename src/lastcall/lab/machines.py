"""The lab's machines on this one: each runs a node, and has a power switch."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from lastcall.errors import InvalidInput
from lastcall.lab.control_plane import ControlPlane
from lastcall.ports import Clock


class LocalMachines:
    """``pages.Machines`` with real processes or containers."""

    def __init__(
        self, plane: ControlPlane, directory: Path, clock: Clock, random: Random, *, count: int, runtime: str
    ) -> None:
        self._plane = plane
        self._directory = directory
        self._clock = clock
        self._random = random
        self._runtime = runtime
        self.names = [f"lab-{number}" for number in range(1, count + 1)]

    def status(self) -> Sequence[dict[str, Any]]:
        """One line for each."""
        return [{"name": name, "power": "on"} for name in self.names]

    async def switch(self, node: str, to: str) -> None:
        """Turns a switch."""
        if node not in self.names:
            raise InvalidInput("power", [f'"{node}" is no machine of this lab; there are {", ".join(self.names)}'])

    async def run(self) -> None:
        """Until cancelled."""
        await self._clock.sleep(float("inf"))

    async def up(self) -> None:
        """Returns when all nodes are ready."""

    async def clean_up(self) -> None:
        """Ends everything that runs."""
