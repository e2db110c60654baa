"""systemd-logind on the system bus (org.freedesktop.login1, see its manual page), as ``ports.node.Logind``."""

import asyncio
import math
import signal
from collections import deque
from collections.abc import Sequence
from typing import Any

from dbus_fast import Message

from lastcall import names
from lastcall.adapters.systemd.bus import DRIVER, Bus, NoSuchProperty
from lastcall.errors import Unavailable
from lastcall.ports.node import Inhibitor, LogindChange

_SERVICE = "org.freedesktop.login1"
_PATH = "/org/freedesktop/login1"
_MANAGER = "org.freedesktop.login1.Manager"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_SYSTEMD = "org.freedesktop.systemd1"
_NO_LIMIT = 2**64 - 1
"""USEC_INFINITY."""

_OWNER_RULE = f"type='signal',sender='{DRIVER}',interface='{DRIVER}',member='NameOwnerChanged',arg0='{_SERVICE}'"
_FROM_LOGIND = f"type='signal',sender='{_SERVICE}',path='{_PATH}'"
_RULES = (
    f"{_FROM_LOGIND},interface='{_MANAGER}',member='PrepareForShutdown'",
    f"{_FROM_LOGIND},interface='{_PROPERTIES}',member='PropertiesChanged',arg0='{_MANAGER}'",
)


class SystemLogind:
    """``ports.node.Logind``. ``bus_address`` None is $DBUS_SYSTEM_BUS_ADDRESS or the system bus."""

    def __init__(self, bus_address: str | None = None) -> None:
        self._address = bus_address

    async def open(self) -> "SystemLogindSession":
        """Opens a session with its signals subscribed. Unavailable says what is missing."""
        bus = await Bus.open(self._address)
        session = SystemLogindSession(bus)
        try:
            await session.subscribe()
        except BaseException:
            session.close()
            raise
        return session


class SystemLogindSession:
    """``ports.node.LogindSession``."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._owner: str | None = None
        self._heard: deque[LogindChange] = deque()
        self._news = asyncio.Event()
        self._has_metadata = True
        bus.on_signal(self._handle_signal)
        bus.on_lost(self._news.set)

    async def subscribe(self) -> None:
        """Learns the owner of logind's name before the first signal can arrive, so that its signals are recognized."""
        await self._bus.subscribe(_OWNER_RULE)
        await self._read_property("PreparingForShutdown")  # proves that it answers; has the bus start it if possible
        owner = await self._bus.name_owner(_SERVICE)
        if self._owner is None:  # otherwise it has changed since, and the signal is newer than the answer
            self._owner = owner
        for rule in _RULES:
            await self._bus.subscribe(rule)

    async def is_preparing(self) -> bool:
        """The property PreparingForShutdown."""
        return bool(await self._read_property("PreparingForShutdown"))

    async def max_delay(self) -> float:
        """The property InhibitDelayMaxUSec in seconds; ``inf`` if unlimited."""
        microseconds = int(await self._read_property("InhibitDelayMaxUSec"))
        return math.inf if microseconds == _NO_LIMIT else microseconds / 1_000_000

    async def take_lock(self, why: str) -> int:
        """Takes a new delay lock on shutdown; the caller owns the descriptor (close-on-exec)."""
        reply = await self._call_manager("Inhibit", "ssss", "shutdown", names.LOCK_WHO, why, "delay")
        return int(reply.unix_fds[reply.body[0]])

    async def list_inhibitors(self) -> Sequence[Inhibitor]:
        """All inhibitor locks of all programs."""
        reply = await self._call_manager("ListInhibitors")
        return [
            Inhibitor(what=what, who=who, why=why, mode=mode, uid=uid, pid=pid)
            for what, who, why, mode, uid, pid in reply.body[0]
        ]

    async def scheduled_shutdown(self) -> str:
        """The type of the shutdown that is scheduled or under way, or "".

        PreparingForShutdownWithMetadata (systemd 257) counts before ScheduledShutdown, whose type is of the next one.
        """
        return await self._prepared_kind() or str((await self._read_property("ScheduledShutdown"))[0])

    async def reload(self) -> None:
        """Has systemd send SIGHUP to logind, whose unit has no ExecReload before systemd 253."""
        await self._bus.call(
            _SYSTEMD,
            "/org/freedesktop/systemd1",
            "org.freedesktop.systemd1.Manager",
            "KillUnit",
            "ssi",
            "systemd-logind.service",
            "all",
            int(signal.SIGHUP),
        )

    async def next_change(self) -> LogindChange:
        """The next change, in order. Raises Unavailable when the bus is lost."""
        while not self._heard:
            if not self._bus.is_connected:
                raise Unavailable("the connection to the message bus is lost")
            self._news.clear()
            await self._news.wait()
        return self._heard.popleft()

    async def wait_for_change(self) -> None:
        """Does not end: some changes cause no signal (the limit, a cancelled shutdown), and signals can be lost."""

    def close(self) -> None:
        """Leaves the bus; locks stay held."""
        self._bus.close()

    async def _prepared_kind(self) -> str:
        """The type of the shutdown under way, by PreparingForShutdownWithMetadata; "" if there is none of either."""
        if not self._has_metadata:
            return ""
        try:
            found = await self._read_property("PreparingForShutdownWithMetadata")
        except NoSuchProperty:
            self._has_metadata = False
            return ""
        kind = found.get("type") if isinstance(found, dict) else None
        return str(kind.value) if kind else ""

    async def _call_manager(self, member: str, signature: str = "", *body: str) -> Message:
        return await self._bus.call(_SERVICE, _PATH, _MANAGER, member, signature, *body)

    async def _read_property(self, name: str) -> Any:
        reply = await self._bus.call(_SERVICE, _PATH, _PROPERTIES, "Get", "ss", _MANAGER, name)
        return reply.body[0].value

    def _handle_signal(self, message: Message) -> None:
        """Checks the sender: the bus filters broadcasts, but any client can send a signal straight to us."""
        if message.sender == DRIVER and message.member == "NameOwnerChanged":
            self._update_owner(*message.body)
        elif message.sender == self._owner and message.path == _PATH:
            self._queue_change(_signal_change(message))

    def _update_owner(self, name: str, before: str, now: str) -> None:
        if name == _SERVICE:
            self._owner = now
            self._queue_change(LogindChange.RESTARTED if now else None)

    def _queue_change(self, change: LogindChange | None) -> None:
        if change:
            self._heard.append(change)
            self._news.set()


def _signal_change(message: Message) -> LogindChange | None:
    """The change that a signal of logind reports; None if it does not concern a shutdown."""
    if message.member == "PrepareForShutdown" and message.signature == "b":
        return LogindChange.PREPARING if message.body[0] else LogindChange.CANCELLED
    if message.member == "PropertiesChanged" and message.signature == "sa{sv}as":
        _, changed, invalidated = message.body
        if "PreparingForShutdown" in changed:
            return LogindChange.PREPARING if changed["PreparingForShutdown"].value else LogindChange.CANCELLED
        if "ScheduledShutdown" in changed or {"PreparingForShutdown", "ScheduledShutdown"} & set(invalidated):
            return LogindChange.SCHEDULED
    return None
