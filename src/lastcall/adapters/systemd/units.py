"""Units of systemd (org.freedesktop.systemd1 on the system bus): their states, starting, stopping, a timer, a command."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dbus_fast import Message, Variant

from lastcall.adapters.systemd.bus import Bus
from lastcall.ports.units import UnitState

_TIMER_ACCURACY = 1.0
"""systemd's default of a minute would save wake-ups; here there is only one."""


class SystemdUnits:
    """``ports.units.Units`` of the system manager, over one connection.

    Every method raises Unavailable if systemd does not answer or refuses, and NotPermitted without the right.
    """

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    @classmethod
    @asynccontextmanager
    async def open(cls, bus_address: str | None = None) -> "AsyncIterator[SystemdUnits]":
        """Connects; ``bus_address`` None is $DBUS_SYSTEM_BUS_ADDRESS or the system bus."""
        bus = await Bus.open(bus_address)
        try:
            yield cls(bus)
        finally:
            bus.close()

    async def unit_states(self, *names: str) -> list[UnitState]:
        """The states of the units, in this order; also of units that do not exist."""
        reply = await self._call_manager("ListUnitsByNames", "as", list(names))
        return [UnitState(load=unit[2], active=unit[3]) for unit in reply.body[0]]

    async def start_unit(self, name: str) -> None:
        """As ``systemctl start --no-block``: returns when systemd has queued the job, not when the unit runs."""
        await self._call_manager("StartUnit", "ss", name, "replace")

    async def stop_unit(self, name: str) -> None:
        """As ``systemctl stop --no-block``: returns when systemd has queued the job."""
        await self._call_manager("StopUnit", "ss", name, "replace")

    async def start_timer(self, name: str, *, seconds: float, starts: str, description: str) -> None:
        """Creates a timer unit ``name``.timer that starts the unit ``starts`` once, after so many seconds.

        The timer depends on systemd alone; systemd drops it when it has elapsed, and when the machine shuts down. A
        timer activates the service of its own name. That service only wants the unit, and systemd starts a wanted unit
        whatever happens to the service's own process. Raises Unavailable also while such a timer exists.
        """
        timer = {
            "Description": Variant("s", description),
            "TimersMonotonic": Variant("a(st)", [["OnActiveSec", _to_microseconds(seconds)]]),
            "AccuracyUSec": Variant("t", _to_microseconds(_TIMER_ACCURACY)),
            "RemainAfterElapse": Variant("b", False),
        }
        service = {
            "Description": Variant("s", description),
            "Type": Variant("s", "oneshot"),
            "ExecStart": Variant("a(sasb)", [["/bin/true", ["/bin/true"], False]]),
            "Wants": Variant("as", [starts]),
            "CollectMode": Variant("s", "inactive-or-failed"),
        }
        others = [[f"{name}.service", _encode_properties(service)]]
        signature = "ssa(sv)a(sa(sv))"
        await self._call_manager(
            "StartTransientUnit", signature, f"{name}.timer", "fail", _encode_properties(timer), others
        )

    async def run_command(self, name: str, command: Sequence[str], *, description: str) -> None:
        """A transient service of Type=oneshot; systemd drops it when it has ended, also if it fails."""
        service = {
            "Description": Variant("s", description),
            "Type": Variant("s", "oneshot"),
            "ExecStart": Variant("a(sasb)", [[command[0], list(command), False]]),
            "CollectMode": Variant("s", "inactive-or-failed"),
        }
        properties = _encode_properties(service)
        await self._call_manager("StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", properties, [])

    async def _call_manager(self, member: str, signature: str, *body: Any) -> Message:
        service = "org.freedesktop.systemd1"
        return await self._bus.call(
            service, "/org/freedesktop/systemd1", f"{service}.Manager", member, signature, *body
        )


def _to_microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _encode_properties(properties: dict[str, Variant]) -> list[list[Any]]:
    return [[name, value] for name, value in properties.items()]
