"""Orders to fences: one that takes longer than our lease lasts has its end put off while we go on leading.

Whoever runs it ends it by himself at the moment that he was told last. So if this process stands still, or dies, or leads no
more, the order is over before anybody else may lead, and a healthy leader kills no order of his own early.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from lastcall.aio import cancel
from lastcall.errors import TimedOut
from lastcall.failover.deciding import fencing
from lastcall.failover.doing.devices import Devices
from lastcall.failover.doing.outside import Leadership
from lastcall.failover.telling.happenings import Acted, Listener
from lastcall.ports import Clock

EVERY = 1.0
"""Seconds between two times at which the end is put off; the lease is renewed every two to four."""


class Orders:
    """Of one controller."""

    def __init__(self, leadership: Leadership, clock: Clock, tell: Listener) -> None:
        self._leadership = leadership
        self._clock = clock
        self._tell = tell

    async def give(
        self, acted: Acted, devices: Devices, order: Callable[[str, float], Awaitable[str]], wanted: float
    ) -> None:
        """What has come of it is told. TimedOut if there was no time for it.

        Nothing comes between the look at the clock and the order: who writes to a full log may stand still for long.
        """
        self._tell(acted)
        over_by, now = self._leadership.sole_until, self._clock.boottime()
        within = fencing.within(wanted, over_by=over_by, now=now)
        if not within:
            error = f"the time for which we lead is too short to switch {acted.verb}"
            self._tell(replace(acted, ended=self._clock.boottime(), error=error))
            raise TimedOut(error)
        keeping = asyncio.create_task(self._keep(acted.fencer, devices, began=now, wanted=wanted))
        try:
            error = await order(acted.fencer, within)
        finally:
            await cancel(keeping)
        self._tell(replace(acted, ended=self._clock.boottime(), error=error))

    async def _keep(self, fencer: str, devices: Devices, *, began: float, wanted: float) -> None:
        """Puts the end of the order off, again and again."""
        while True:
            await self._clock.sleep(EVERY)
            devices.put_off(fencer, fencing.lasts_until(wanted, began=began, over_by=self._leadership.sole_until))
