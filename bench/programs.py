"""Programs of lastcall as an administrator starts them, and the ear of somebody else on the bus."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from lastcall.adapters.systemd.bus import Bus

_RULE = "type='signal',interface='org.freedesktop.login1.Manager',member='PrepareForShutdown'"


class Program:
    """A process with a log; ended by ``stop`` or ``kill``."""

    def __init__(self, process, log):
        self.process, self.log = process, log

    @classmethod
    async def lastcall(cls, *arguments, log, bus):
        command = [sys.executable, "-m", "lastcall", *map(str, arguments)]
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": bus},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,  # the scheduler's group of its own, as each service of systemd has
            )
        if arguments[0] == "agent":
            raise_weight(process.pid)
        return cls(process, log)

    async def until_says(self, text, seconds=30.0):
        end = time.monotonic() + seconds
        while text not in self.log.read_text():
            if self.process.returncode is not None or time.monotonic() > end:
                raise RuntimeError(f"waited in vain for {text!r}:\n{self.log.read_text()[-3000:]}")
            await asyncio.sleep(0.05)

    async def stop(self):
        """SIGTERM: at rest it lets the lock go and leaves the pods running."""
        await self._end(signal.SIGTERM)

    async def kill(self):
        await self._end(signal.SIGKILL)

    async def _end(self, number):
        if self.process.returncode is None:
            self.process.send_signal(number)
            await asyncio.wait_for(self.process.wait(), 30)


def raise_weight(pid):
    """About CPUWeight=1000, as in the agent's unit. The scheduler's group of a session is weighted by its nice value."""
    with contextlib.suppress(OSError):  # not root, or no such groups
        Path(f"/proc/{pid}/autogroup").write_text("-10")


class Ear:
    """Hears PrepareForShutdown as the agent does; ``at`` is when (CLOCK_BOOTTIME seconds)."""

    def __init__(self, bus):
        self._bus = bus
        self.at = None
        bus.on_signal(self._hear)

    @classmethod
    async def on(cls, address):
        bus = await Bus.open(address)
        ear = cls(bus)
        await bus.subscribe(_RULE)
        return ear

    def close(self):
        self._bus.close()

    def _hear(self, message):
        if self.at is None and message.member == "PrepareForShutdown" and message.body == [True]:
            self.at = time.clock_gettime(time.CLOCK_BOOTTIME)
