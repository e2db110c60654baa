"""Starting and stopping units by systemd (org.freedesktop.systemd1 on the system bus)."""

from lastcall.adapters.bus import Bus


class SystemdUnits:
    """Units of the system manager. ``bus_address`` None is $DBUS_SYSTEM_BUS_ADDRESS or the system bus.

    Each call has a connection of its own: it is made once or twice in a machine's life, and nothing is kept open.
    """

    def __init__(self, bus_address: str | None = None) -> None:
        self._address = bus_address

    async def start_unit(self, name: str) -> None:
        """As ``systemctl start --no-block``: returns when systemd has queued the job, not when the unit runs.

        Unavailable if systemd does not answer or does not know the unit, NotPermitted without the right.
        """
        await self._queue("StartUnit", name)

    async def stop_unit(self, name: str) -> None:
        """As ``systemctl stop --no-block``: returns when systemd has queued the job. Errors as in ``start_unit``."""
        await self._queue("StopUnit", name)

    async def _queue(self, verb: str, name: str) -> None:
        bus = await Bus.open(self._address)
        try:
            await bus.call(
                "org.freedesktop.systemd1",
                "/org/freedesktop/systemd1",
                "org.freedesktop.systemd1.Manager",
                verb,
                "ss",
                name,
                "replace",
            )
        finally:
            bus.close()
