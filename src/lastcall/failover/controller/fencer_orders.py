"""Orders to fencers; the deadline of an order is extended while this controller leads and the node stays silent.

A machine may come back or reboot during an order: the order is cancelled then, because it would power off a node that
has come back.

The helper process aborts the order at the last deadline it received. So if this process hangs, dies or loses its
leadership, the order is over before another controller may lead; and a healthy leader does not abort its own order
early.
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
"""Calls a fence by name with a limit in seconds; returns the reason of a failure, empty if the order was accepted."""

EVERY = 1.0
"""Seconds between two extensions of the deadline; the leader's Lease is renewed every two to four seconds."""
LOOK = 3.0
"""Seconds between two live reads of a node during an order to power off; three requests each."""


class FencerOrders:
    """The orders of one controller."""

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
        """Gives an order and reports its result. TimedOut if not enough time of leadership is left.

        ``surety``: the safety check made right before; RefusedForSafety if it is too old when the order starts.
        ``heeding``: the check also runs during the order, and a failed one cancels it completely.
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
        """Returns the reason of a failure, empty if accepted.

        The concurrent checks end with the order, or end it by failing.
        """
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
        """Starts the order.

        No log write comes between reading the clock and the order: a write to a full log may block for long.
        """
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
        """Extends the deadline repeatedly, unless the node showed a sign of life."""
        while not running.done():
            await self._clock.sleep(EVERY)
            if surety:
                surety.recheck_cached()
            devices.extend_order(
                fencer, fencer_choice.order_deadline(wanted, began=began, over_by=self._leadership.sole_until)
            )

    async def _verify_while_running(self, running: "asyncio.Task[str]", surety: SafetyCheck) -> None:
        """Reads the node live repeatedly, because a watch may be silent.

        A read may be slow, so it runs concurrently.
        """
        while not running.done():
            await self._clock.sleep(LOOK)
            await surety.verify_during_order()
