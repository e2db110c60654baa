"""Unmounts paths in the machine's own mount namespace, and detaches loop devices, by transient services of systemd.

The agent lives in a mount namespace of its own, as a unit with ProtectSystem= and as a container. Unmounting there would
not reach the host, and needs a capability that the agent does without.
"""

import hashlib
from collections.abc import Sequence

from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.errors import Unavailable
from lastcall.ports.node import Clock
from lastcall.ports.units import OpenUnits

_JOB_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class HostUnmount:
    """umount(8) and losetup(8) on the host."""

    def __init__(self, clock: Clock, open_units: OpenUnits = SystemdUnits.open) -> None:
        self._clock = clock
        self._open_units = open_units

    async def unmount_paths(self, paths: Sequence[str]) -> None:
        """Unmounts the paths in this order, and returns when umount has ended: the mount table shows its success.

        Unavailable if systemd does not answer, or if umount has not ended in time.
        """
        await self._run_on_host("unmount", ["/bin/umount", *paths], "Unmounts volumes of ended pods")

    async def detach_loops(self, devices: Sequence[str]) -> None:
        """Detaches the loop devices, and returns when losetup has ended. Unavailable as of ``unmount_paths``."""
        await self._run_on_host("detach", ["/sbin/losetup", "--detach", *devices], "Detaches devices of ended pods")

    async def _run_on_host(self, verb: str, command: Sequence[str], description: str) -> None:
        """Returns when systemd has dropped the unit.

        A unit at rest may have its job before it, and while systemd knows it no other attempt can begin.
        """
        name = f"lastcall-{verb}-{hashlib.sha256(chr(0).join(command).encode()).hexdigest()[:16]}.service"
        end = self._clock.boottime() + _JOB_SECONDS
        async with self._open_units() as systemd:
            await systemd.run_command(name, command, description=description)
            while True:
                [unit] = await systemd.unit_states(name)
                if unit.load == "not-found":
                    return
                if self._clock.boottime() >= end:
                    raise Unavailable(f"{' '.join(command)} has not ended after {_JOB_SECONDS:g} s")
                await self._clock.sleep(_LOOK_SECONDS)
