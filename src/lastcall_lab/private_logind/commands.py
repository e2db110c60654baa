"""Commands to a private logind over its bus: press the power button, query the recorder."""

from typing import Any

import msgspec

from lastcall.adapters.systemd.bus import Bus
from lastcall.ports.node import Clock
from lastcall_lab.fakes.systemd_calls import SystemdCall, SystemdResponse
from lastcall_lab.private_logind.programs import CONTROL, CONTROL_PATH, SYSTEMD

_LOGIN = "org.freedesktop.login1"

_PATIENCE = 60.0
"""Seconds after which a service counts as hung; generous, as the machine may be busy."""


class LogindCommands:
    """Each method has a connection of its own, as each command of an administrator would."""

    def __init__(self, address: str, clock: Clock) -> None:
        self._address = address
        self._clock = clock

    async def power_off(self) -> None:
        """Has logind power off (PowerOff), as by `systemctl poweroff`. ShutdownUnderWay, NotPermitted if the target is masked."""
        await self._call_login("PowerOff", "b", False)

    async def reboot(self) -> None:
        """Has logind reboot. Errors as in ``power_off``."""
        await self._call_login("Reboot", "b", False)

    async def schedule(self, kind: str, seconds: float) -> None:
        """Has logind schedule a shutdown, as by `shutdown +m`: "poweroff", "reboot", ... so many seconds from now."""
        await self._call_login("ScheduleShutdown", "st", kind, round((self._clock.wall() + seconds) * 1_000_000))

    async def cancel_schedule(self) -> None:
        """Has logind cancel the schedule (CancelScheduledShutdown), as by `shutdown -c`."""
        await self._call_login("CancelScheduledShutdown")

    async def calls(self, member: str | None = None) -> list[SystemdCall]:
        """The calls that systemd1 has received, in order; only those of ``member`` if it is given."""
        reply = await self._call_bus(SYSTEMD, CONTROL_PATH, CONTROL, "Calls")
        calls = msgspec.json.decode(reply, type=list[SystemdCall])
        return [call for call in calls if member in (None, call.member)]

    async def starts(self) -> list[SystemdCall]:
        """The targets that logind has started: the machine shuts down at ``at``."""
        return [call for call in await self.calls("StartUnit") if str(call.arguments[0]).endswith(".target")]

    async def wait_for_start(self, number: int = 1, *, seconds: float = 60.0) -> SystemdCall:
        """The ``number``-th of ``starts``. Raises TimeoutError if it does not come within so many seconds."""
        deadline = self._clock.boottime() + seconds
        while True:
            starts = await self.starts()
            if len(starts) >= number:
                return starts[number - 1]
            if self._clock.boottime() > deadline:
                raise TimeoutError(f"no StartUnit number {number} within {seconds:g} s")
            await self._clock.sleep(0.01)

    async def set_mode(self, mode: SystemdResponse) -> None:
        """Sets how the recorder answers from now on."""
        await self._call_bus(SYSTEMD, CONTROL_PATH, CONTROL, "SetMode", "s", mode.name)

    async def run_unit(self, name: str) -> None:
        """Makes a service active until it is stopped."""
        await self._call_bus(SYSTEMD, CONTROL_PATH, CONTROL, "Run", "s", name)

    async def end_job(self, number: int = 1, result: str = "canceled") -> None:
        """Ends the ``number``-th job (JobRemoved), upon which logind considers the shutdown over."""
        await self._call_bus(SYSTEMD, CONTROL_PATH, CONTROL, "EndJob", "us", number, result)

    async def _call_login(self, member: str, signature: str = "", *body: Any) -> None:
        await self._call_bus(_LOGIN, "/org/freedesktop/login1", f"{_LOGIN}.Manager", member, signature, *body)

    async def _call_bus(
        self, service: str, path: str, interface: str, member: str, signature: str = "", *body: Any
    ) -> Any:
        bus = await Bus.open(self._address, patience=_PATIENCE)
        try:
            reply = await bus.call(service, path, interface, member, signature, *body)
            return reply.body[0] if reply.body else None
        finally:
            bus.close()
