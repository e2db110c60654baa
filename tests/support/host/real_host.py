"""The real logind and a real systemd on one bus, as on a machine: what logind starts, and what runs on the host."""

import asyncio
import contextlib
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from support.host import service_manager
from support.host.logind import PATIENT, a_private_logind

from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import Unavailable

GOING_DOWN = "machine-goes-down.service"
TARGETS = {
    "test.target": "[Unit]\nWants=dbus.service\n",
    "poweroff.target": f"[Unit]\nRequires={GOING_DOWN}\nAfter={GOING_DOWN}\n",
    GOING_DOWN: "[Service]\nType=oneshot\nExecStart=/bin/sleep 100000\n",
}
"""The second is what logind starts; as on a machine its job does not end. Here it stops nothing."""


class RealHost:
    """``logind`` is the private one, at whose bus systemd is too."""

    def __init__(self, logind):
        self.logind = logind
        self.open_units = partial(SystemdUnits.open, logind.address)

    async def running(self, *names):
        """Which of these units run."""
        async with self.open_units() as systemd:
            states = await systemd.unit_states(*names)
        return [name for name, state in zip(names, states, strict=True) if not state.is_at_rest]

    async def went_down(self):
        """Whether logind has gone on with the shutdown: the last lock is released."""
        return bool(await self.running(GOING_DOWN))

    async def start(self, name):
        async with self.open_units() as systemd:
            await systemd.start_unit(name)

    async def stop(self, name):
        async with self.open_units() as systemd:
            await systemd.stop_unit(name)

    async def fail_to_go_down(self):
        """After ``went_down`` the machine stays up: the job that logind waits for fails, and no shutdown is prepared."""
        manager = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
        command = ["busctl", f"--address={self.logind.address}", "call", *manager, "KillUnit", "ssi", GOING_DOWN]
        await asyncio.to_thread(subprocess.run, [*command, "all", "9"], check=True)
        while await self.went_down():
            await asyncio.sleep(0.02)

    async def until_answers(self):
        for _ in range(3000):
            try:
                return await self.running(GOING_DOWN)
            except Unavailable:
                await asyncio.sleep(0.02)
        raise AssertionError("systemd does not come to the bus of logind")


@contextlib.contextmanager
def real_host(units, *, own_network=True, shared=None):
    """Runs until the context ends. ``units`` are the host's services by their names.

    Without ``own_network`` they can reach what listens on the machine's loopback. What is mounted below ``shared``, the
    mount point of a shared mount, is mounted for the test too.
    """
    state = Path(tempfile.mkdtemp(prefix="lastcall-", dir="/tmp"))  # short: a unix socket's path has 107 bytes
    everything = {**service_manager.OTHER_BUS, **TARGETS, **units}
    try:
        with a_private_logind(PATIENT) as logind:
            recorder = logind._processes["recorder"]
            recorder.kill()  # systemd takes its name on the bus
            recorder.wait()
            options = {"start": "test.target", "bus": logind.address, "own_network": own_network, "shared": shared}
            with service_manager.service_manager(state, everything, **options):
                yield RealHost(logind)
    finally:
        shutil.rmtree(state)
