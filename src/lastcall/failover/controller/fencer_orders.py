"""Orders to fences: one that takes longer than our lease lasts has its end put off while we go on leading.

A machine that is to go off may come back meanwhile, or boot anew: the order is given up then, for it would strike who lives.

Whoever runs it ends it by himself at the moment that he was told last. So if this process stands still, or dies, or leads no
more, the order is over before anybody else may lead, and a healthy leader kills no order of his own early.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from lastcall.aio import wait_first
from lastcall.errors import LastcallError, TimedOut
from lastcall.failover.controller.controller_ports import Leadership
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.failover.controller.preconditions import SafetyCheck
from lastcall.failover.decisions import fencer_choice
from lastcall.failover.reporting.controller_events import CallReported, Listener
from lastcall.ports.node import Clock

Order = Callable[[str, float], Awaitable[str]]
"""To a fence by its name, which may take so many seconds: why it has failed, empty if it was accepted."""

EVERY = 1.0
"""Seconds between two times at which the end is put off; the lease is renewed every two to four."""
LOOK = 3.0
"""Seconds between two live looks at a node while it is being switched off; three requests each."""


class FencerOrders:
    """Of one controller."""

    def __init__(self, leadership: Leadership, clock: Clock, tell: Listener) -> None:
        self._leadership = leadership
        self._clock = clock
        self._tell = tell

    async def give(
        self,
        acted: CallReported,
        devices: NodeFencers,
        order: Order,
        wanted: float,
        surety: SafetyCheck,
        *,
        heeding: bool,
    ) -> None:
        """What has come of it is told. TimedOut if there was no time for it.

        ``surety``: by what it was made sure of right before; RefusedForSafety if that is too long ago once it is told.
        ``heeding``: also as soon as that is not so any more, and then nothing of the order runs on.
        """
        self._tell(acted)
        try:
            error = await self._run_order(acted, devices, order, wanted, surety, heeding=heeding)
        except LastcallError as failure:
            self._tell(replace(acted, ended=self._clock.boottime(), error=str(failure)))
            raise
        self._tell(replace(acted, ended=self._clock.boottime(), error=error))

    async def _run_order(
        self,
        acted: CallReported,
        devices: NodeFencers,
        order: Order,
        wanted: float,
        surety: SafetyCheck,
        *,
        heeding: bool,
    ) -> str:
        """Why it has failed, empty if it was accepted. What goes on beside it ends with it, and ends it by failing."""
        began = self._clock.boottime()
        running = asyncio.create_task(self._start_order(acted, order, wanted, surety))
        beside = [
            self._extend_while_leading(
                running, acted.fencer, devices, surety if heeding else None, began=began, wanted=wanted
            )
        ]
        if heeding:
            beside.append(self._verify_while_running(running, surety))
        await wait_first(running, *beside)
        return running.result()

    async def _start_order(self, acted: CallReported, order: Order, wanted: float, surety: SafetyCheck) -> str:
        """Nothing comes between the looks at the clock and the order: who writes to a full log may stand still for long."""
        over_by, now = self._leadership.sole_until, self._clock.boottime()
        within = fencer_choice.order_seconds(wanted, over_by=over_by, now=now)
        if not within:
            raise TimedOut(f"the time for which we lead is too short to switch {acted.verb}")
        surety.ensure_recent()
        return await order(acted.fencer, within)

    async def _extend_while_leading(
        self,
        running: "asyncio.Task[str]",
        fencer: str,
        devices: NodeFencers,
        surety: SafetyCheck | None,
        *,
        began: float,
        wanted: float,
    ) -> None:
        """Puts the end of the order off, again and again, unless something was heard of the node."""
        while not running.done():
            await self._clock.sleep(EVERY)
            if surety:
                surety.recheck_cached()
            devices.extend_order(
                fencer, fencer_choice.order_deadline(wanted, began=began, over_by=self._leadership.sole_until)
            )

    async def _verify_while_running(self, running: "asyncio.Task[str]", surety: SafetyCheck) -> None:
        """Looks live, again and again: a watch may be silent. A look may take long, so it stands beside."""
        while not running.done():
            await self._clock.sleep(LOOK)
            await surety.verify_during_order()
