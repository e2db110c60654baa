"""systemd's units over one connection that stays open: at a shutdown nothing waits until the bus has let us in."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lastcall.adapters.systemd.bus import Bus
from lastcall.adapters.systemd.units import SystemdUnits
from lastcall.aio import cancel_and_wait
from lastcall.errors import LastcallError, Unavailable

log = logging.getLogger(__name__)


class StandingUnits:
    """``open`` as of ``SystemdUnits``; a connection that was lost, or on which a call failed, is replaced by the next use.

    ``bus_address`` None is $DBUS_SYSTEM_BUS_ADDRESS or the system bus.
    """

    def __init__(self, bus_address: str | None = None) -> None:
        self._address = bus_address
        self._bus: Bus | None = None
        self._connecting = asyncio.Lock()
        self._first: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to connect; nobody waits for it, and a failure is left to the first use."""
        self._first = asyncio.create_task(self._try_to_connect(), name="connection to systemd")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[SystemdUnits]:
        """The units; Unavailable if the bus cannot be reached."""
        bus = await self._connect()
        try:
            yield SystemdUnits(bus)
        except Unavailable:
            self._drop(bus)
            raise

    async def close(self) -> None:
        """Leaves the bus."""
        if self._first:
            await cancel_and_wait(self._first)
        if self._bus:
            self._drop(self._bus)

    async def _connect(self) -> Bus:
        async with self._connecting:
            if self._bus is None or not self._bus.is_connected:
                self._bus = await Bus.open(self._address)
            return self._bus

    async def _try_to_connect(self) -> None:
        try:
            await self._connect()
        except LastcallError as error:
            log.debug("no connection to systemd yet: %s", error)

    def _drop(self, bus: Bus) -> None:
        bus.close()
        if self._bus is bus:
            self._bus = None
