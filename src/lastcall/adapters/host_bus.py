"""What systemd and logind tell of a host over the bus. Nothing is changed; each question has a connection of its own."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from lastcall.adapters.bus import Bus
from lastcall.adapters.logind import SystemLogind
from lastcall.errors import NotPermitted
from lastcall.host import Attempt, LogindState, Unit, WatchdogUse

_SYSTEMD = "org.freedesktop.systemd1"
_SYSTEMD_PATH = "/org/freedesktop/systemd1"
_LOGIND = "org.freedesktop.login1"
_PROPERTIES = "org.freedesktop.DBus.Properties"


class HostBus:
    """``address`` None is $DBUS_SYSTEM_BUS_ADDRESS or the system bus. Errors are LastcallErrors."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address

    async def systemd_version(self) -> str:
        """As packagers write it, such as ``252.38-1~deb12u1``."""
        async with self._bus() as bus:
            return str(await _get(bus, _SYSTEMD_PATH, "Manager", "Version"))

    async def load_states(self, units: Sequence[str]) -> dict[str, str]:
        """Each unit's LoadState: "loaded", "masked", "not-found" ..."""
        async with self._bus() as bus:
            return {unit: str(await _get(bus, await _load(bus, unit), "Unit", "LoadState")) for unit in units}

    async def service(self, name: str) -> Unit | None:
        """What systemd knows of a service; None if there is none of this name."""
        async with self._bus() as bus:
            path = await _load(bus, name)
            if await _get(bus, path, "Unit", "LoadState") == "not-found":
                return None
            return Unit(
                name=name,
                kill_mode=str(await _get(bus, path, "Service", "KillMode")),
                stored_descriptors=int(await _get(bus, path, "Service", "FileDescriptorStoreMax")),
                environment=tuple(await _get(bus, path, "Service", "Environment")),
            )

    async def watchdog_use(self, unit: str) -> WatchdogUse:
        """What systemd does with watchdogs, and whether it hides them from a service; if there is none, it does not."""
        async with self._bus() as bus:
            running, rebooting = [
                int(await _get(bus, _SYSTEMD_PATH, "Manager", name)) / 1e6
                for name in ("RuntimeWatchdogUSec", "RebootWatchdogUSec")
            ]
            path = await _load(bus, unit)
            hidden = bool(await _get(bus, path, "Service", "PrivateDevices"))
            return WatchdogUse(running=running, rebooting=rebooting, hidden=hidden)

    async def logind(self) -> LogindState:
        """What logind says of itself."""
        session = await SystemLogind(self._address).open()
        try:
            granted, preparing, scheduled, inhibitors = await asyncio.gather(
                session.max_delay(), session.preparing(), session.scheduled(), session.inhibitors()
            )
        finally:
            session.close()
        return LogindState(granted=granted, preparing=preparing, scheduled=scheduled, inhibitors=tuple(inhibitors))

    async def try_lock(self) -> Attempt:
        """Takes a delay lock, under a name that no agent takes for its own, and gives it back at once."""
        async with self._bus() as bus:
            what = ("shutdown", "lastcall doctor", "Tries whether it may", "delay")
            path, interface = "/org/freedesktop/login1", f"{_LOGIND}.Manager"
            try:
                reply = await bus.call(_LOGIND, path, interface, "Inhibit", "ssss", *what)
            except NotPermitted as error:
                return Attempt(works=False, message=str(error))
            os.close(reply.unix_fds[reply.body[0]])
        return Attempt(works=True, message="a delay lock was taken and given back")

    @asynccontextmanager
    async def _bus(self) -> AsyncIterator[Bus]:
        bus = await Bus.open(self._address)
        try:
            yield bus
        finally:
            bus.close()


async def _load(bus: Bus, unit: str) -> str:
    """The unit's path on the bus; systemd loads it for that if it is not loaded yet."""
    reply = await bus.call(_SYSTEMD, _SYSTEMD_PATH, f"{_SYSTEMD}.Manager", "LoadUnit", "s", unit)
    return str(reply.body[0])


async def _get(bus: Bus, path: str, interface: str, name: str) -> Any:
    reply = await bus.call(_SYSTEMD, path, _PROPERTIES, "Get", "ss", f"{_SYSTEMD}.{interface}", name)
    return reply.body[0].value
