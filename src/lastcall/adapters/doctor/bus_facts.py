"""Facts about systemd and logind, read over the bus without changes; each request has a connection of its own."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from lastcall.adapters.logind.session import SystemLogind
from lastcall.adapters.systemd.bus import Bus
from lastcall.doctor.drill_facts import KubeletUnitFacts
from lastcall.doctor.facts import AttemptResult, LogindState, ServiceUnit, SystemdWatchdogUse
from lastcall.errors import NotPermitted

_SYSTEMD = "org.freedesktop.systemd1"
_SYSTEMD_PATH = "/org/freedesktop/systemd1"
_LOGIND = "org.freedesktop.login1"
_PROPERTIES = "org.freedesktop.DBus.Properties"


class HostBus:
    """The host's bus; ``address`` None is $DBUS_SYSTEM_BUS_ADDRESS or the system bus. Errors are LastcallErrors."""

    def __init__(self, address: str | None = None) -> None:
        self._address = address

    async def systemd_version(self) -> str:
        """Returns systemd's version in the packagers' form, such as ``252.38-1~deb12u1``."""
        async with self._open_bus() as bus:
            return str(await _get_property(bus, _SYSTEMD_PATH, "Manager", "Version"))

    async def load_states(self, units: Sequence[str]) -> dict[str, str]:
        """Each unit's LoadState: "loaded", "masked", "not-found" ..."""
        async with self._open_bus() as bus:
            return {
                unit: str(await _get_property(bus, await _load_unit(bus, unit), "Unit", "LoadState")) for unit in units
            }

    async def find_service(self, name: str) -> ServiceUnit | None:
        """The state of a service in systemd; None if no such unit exists."""
        async with self._open_bus() as bus:
            path = await _load_unit(bus, name)
            if await _get_property(bus, path, "Unit", "LoadState") == "not-found":
                return None
            return ServiceUnit(
                name=name,
                kill_mode=str(await _get_property(bus, path, "Service", "KillMode")),
                stored_descriptors=int(await _get_property(bus, path, "Service", "FileDescriptorStoreMax")),
                environment=tuple(await _get_property(bus, path, "Service", "Environment")),
            )

    async def kubelet_unit(self, name: str) -> KubeletUnitFacts:
        """The states of the kubelet's unit, which is not touched; ``not-found`` if there is none of this name."""
        async with self._open_bus() as bus:
            path = await _load_unit(bus, name)
            return KubeletUnitFacts(
                name=name,
                load=str(await _get_property(bus, path, "Unit", "LoadState")),
                active=str(await _get_property(bus, path, "Unit", "ActiveState")),
                can_stop=bool(await _get_property(bus, path, "Unit", "CanStop")),
            )

    async def watchdog_use(self, unit: str) -> SystemdWatchdogUse:
        """Whether systemd pets watchdogs, and whether it hides them from the service (False if there is no service)."""
        async with self._open_bus() as bus:
            running, rebooting = [
                int(await _get_property(bus, _SYSTEMD_PATH, "Manager", name)) / 1e6
                for name in ("RuntimeWatchdogUSec", "RebootWatchdogUSec")
            ]
            path = await _load_unit(bus, unit)
            hidden = bool(await _get_property(bus, path, "Service", "PrivateDevices"))
            return SystemdWatchdogUse(running=running, rebooting=rebooting, hidden=hidden)

    async def logind_state(self) -> LogindState:
        """The properties of logind."""
        session = await SystemLogind(self._address).open()
        try:
            granted, preparing, scheduled, inhibitors = await asyncio.gather(
                session.max_delay(), session.is_preparing(), session.scheduled_shutdown(), session.list_inhibitors()
            )
        finally:
            session.close()
        return LogindState(granted=granted, preparing=preparing, scheduled=scheduled, inhibitors=tuple(inhibitors))

    async def try_lock(self) -> AttemptResult:
        """Takes a delay lock under a name that no agent uses for its own, and releases it at once."""
        async with self._open_bus() as bus:
            what = ("shutdown", "lastcall doctor", "Tries whether it may", "delay")
            path, interface = "/org/freedesktop/login1", f"{_LOGIND}.Manager"
            try:
                reply = await bus.call(_LOGIND, path, interface, "Inhibit", "ssss", *what)
            except NotPermitted as error:
                return AttemptResult(works=False, message=str(error))
            os.close(reply.unix_fds[reply.body[0]])
        return AttemptResult(works=True, message="a delay lock was taken and given back")

    @asynccontextmanager
    async def _open_bus(self) -> AsyncIterator[Bus]:
        bus = await Bus.open(self._address)
        try:
            yield bus
        finally:
            bus.close()


async def _load_unit(bus: Bus, unit: str) -> str:
    """The unit's path on the bus; systemd loads the unit if it is not loaded yet."""
    reply = await bus.call(_SYSTEMD, _SYSTEMD_PATH, f"{_SYSTEMD}.Manager", "LoadUnit", "s", unit)
    return str(reply.body[0])


async def _get_property(bus: Bus, path: str, interface: str, name: str) -> Any:
    reply = await bus.call(_SYSTEMD, path, _PROPERTIES, "Get", "ss", f"{_SYSTEMD}.{interface}", name)
    return reply.body[0].value
