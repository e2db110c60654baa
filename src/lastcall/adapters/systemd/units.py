"""Units of systemd (org.freedesktop.systemd1 on the system bus): their states, starting, stopping; transient ones."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from dbus_fast import Message, Variant

from lastcall.adapters.systemd.bus import Bus
from lastcall.errors import TimedOut, Unavailable
from lastcall.ports.units import UnitState

_TIMER_ACCURACY = 1.0
"""systemd's default of a minute would save wake-ups; here there is only one."""


_END_SECONDS = 5.0
"""Seconds within which a service that ignores no signal has ended."""

_LOOK = 0.003
"""Seconds between two looks whether a service is gone: the machine waits meanwhile."""


class SystemdUnits:
    """``ports.units.Units`` and ``ports.units.TransientServices`` of the system manager, over one connection.

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
        return [UnitState(load=unit[2], active=unit[3], sub=unit[4]) for unit in reply.body[0]]

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

    async def is_running(self, name: str) -> bool:
        """``ports.units.TransientServices``."""
        [state] = await self.unit_states(name)
        return not state.is_at_rest

    async def start_service(
        self,
        name: str,
        *,
        command: Sequence[str],
        description: str,
        stdin: int | None = None,
        stdout: int | None = None,
        seconds: float | None = None,
    ) -> bool:
        """``ports.units.TransientServices``: systemd itself keeps a copy of each descriptor until the service is gone."""
        properties = {
            "Description": Variant("s", description),
            "ExecStart": Variant("a(sasb)", [[command[0], list(command), False]]),
            "StandardInput": Variant("s", "null"),
            "StandardOutput": Variant("s", "null"),
            "CollectMode": Variant("s", "inactive-or-failed"),
        }
        if seconds is not None:
            properties["RuntimeMaxUSec"] = Variant("t", _to_microseconds(seconds))
        streams = {"StandardInput": stdin, "StandardOutput": stdout}
        descriptors = [(stream, descriptor) for stream, descriptor in streams.items() if descriptor is not None]
        for index, (stream, _) in enumerate(descriptors):
            properties[f"{stream}FileDescriptor"] = Variant("h", index)
            del properties[stream]
        try:
            await self._call_manager(
                "StartTransientUnit",
                "ssa(sv)a(sa(sv))",
                name,
                "fail",
                _encode_properties(properties),
                [],
                descriptors=[descriptor for _, descriptor in descriptors],
            )
        except Unavailable:
            if not await self.is_running(name):
                raise
            return False
        return True

    async def end_services(self, *names: str) -> None:
        """``ports.units.TransientServices``."""
        end = asyncio.get_running_loop().time() + _END_SECONDS
        while left := await self._loaded_units(names):
            for name, state in left.items():
                if state.active != "deactivating":  # also one that is about to start
                    with contextlib.suppress(Unavailable):  # it may be gone by now, as the next look shows
                        await self.stop_unit(name)
            if asyncio.get_running_loop().time() >= end:
                raise TimedOut(f"{', '.join(left)} did not end within {_END_SECONDS:g} s")
            await asyncio.sleep(_LOOK)

    async def _loaded_units(self, names: Sequence[str]) -> dict[str, UnitState]:
        states = await self.unit_states(*names)
        return {name: state for name, state in zip(names, states, strict=True) if state.load != "not-found"}

    async def _call_manager(self, member: str, signature: str, *body: Any, descriptors: Sequence[int] = ()) -> Message:
        service = "org.freedesktop.systemd1"
        return await self._bus.call(
            service,
            "/org/freedesktop/systemd1",
            f"{service}.Manager",
            member,
            signature,
            *body,
            descriptors=descriptors,
        )


def _to_microseconds(seconds: float) -> int:
    return round(seconds * 1_000_000)


def _encode_properties(properties: dict[str, Variant]) -> list[list[Any]]:
    return [[name, value] for name, value in properties.items()]
