"""Live checks before irreversible actions: this controller leads, the mark is its own, and the boot is the same."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from lastcall import names
from lastcall.errors import ApiFailure, LastcallError, NotFound, RefusedForSafety, TimedOut, Unavailable
from lastcall.failover.controller.controller_ports import Leadership
from lastcall.failover.controller.node_reading import LASTS, NEVER, NodeReading
from lastcall.failover.decisions.case import NodeSnapshot
from lastcall.failover.evidence import owner_mark
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.evidence.owner_mark import OwnerMark
from lastcall.model.observed import LiveNode
from lastcall.model.tolerations import Taint
from lastcall.ports.node import Clock

HOLDS = 1.0
"""Seconds from the request for which a check holds for further calls of the same step: pods are removed by the hundred.
It does not rely on a watch, which may be silent: the Node and its Lease are read live each time.
"""
LATE = 5.0
"""Seconds after which an answer is too late: the state that it shows may be over, so nothing may be based on it."""
AHEAD = LASTS
"""Seconds after which one call checks again while the others continue; otherwise all would wait for a busy server once
a second.
"""


async def confirm_recently(leadership: Leadership, clock: Clock) -> bool:
    """Whether this controller leads, by a renewal that was sent less than ``AHEAD`` seconds ago, or by one now.

    So the checks of all nodes share their renewals.
    """
    recent = leadership.leads and clock.boottime() < leadership.last_renewal + AHEAD
    return recent or await leadership.confirm_leading()


class SafetyCheck:
    """The safety check of one step about one boot; ``observed``, ``heard`` and ``node`` are the decision's input.

    A later sign of life fails the check, and so does a person who removes the mark or the taint. ``reading`` is the
    live read of the decision: ``ensure`` uses it as the first check. ``refusal`` returns why a fencer is not used, or
    an empty text.
    """

    def __init__(
        self,
        reading: NodeReading,
        leadership: Leadership,
        clock: Clock,
        seen: NodeObservations,
        *,
        me: str,
        boot_id: str,
        observed: float,
        heard: float | None,
        node: NodeSnapshot | None,
        refusal: Callable[[], str] = str,
    ) -> None:
        self._reading = reading
        self._leadership = leadership
        self._clock = clock
        self._seen = seen
        self._me = me
        self._boot_id = boot_id
        self._known = (observed, heard)
        self._decided = node
        self._refusal = refusal
        self._at = NEVER
        self._took = 0.0
        """Seconds until the last read was answered."""
        self._lock = asyncio.Lock()
        self._looking = False
        self._looks = 0
        self._failure: LastcallError | None = None
        """The error of the last check."""

    async def ensure(self) -> None:
        """Verifies the preconditions. RefusedForSafety if one fails; the API's error if they cannot be verified."""
        if self._is_fresh():
            return
        asked, before = self._clock.boottime(), self._looks
        async with self._lock:
            if self._is_fresh() or self._is_covered_since(asked):
                return
            if self._failure and self._looks != before:
                raise self._failure  # from the check that this call waited for: not every waiter checks again
            await self._verify_again()

    async def _verify_again(self) -> None:
        """Runs a check. A failed one invalidates earlier results for all callers, however recent they are."""
        self._looking, self._failure = True, None
        try:
            if not await self._verify_by_reading():
                await self._verify_node(confirm_recently(self._leadership, self._clock))
        except BaseException as error:
            self._at = NEVER
            self._failure = error if isinstance(error, LastcallError) else None
            raise
        finally:
            self._looking = False
            self._looks += 1

    async def _verify_by_reading(self) -> bool:
        """Whether the last read is recent enough, together with the last renewal of our own Lease."""
        if (
            self._reading.reusable_node(self._seen) is None
            or self._clock.boottime() >= self._reading.asked + self._lookahead_seconds
        ):
            return False
        if not await confirm_recently(self._leadership, self._clock):
            raise RefusedForSafety(f"{self._me} does not lead any more")
        node = self._reading.reusable_node(self._seen)  # again: a sign of life during the request counts
        if node is None:
            return False
        self._judge_node(node)
        self._at = self._reading.asked
        return self._is_fresh()

    async def verify_live(self) -> LiveNode:
        """The same, always with a live read and a renewal; returns the Node."""
        return await self._verify_node(self._leadership.confirm_leading())

    async def _verify_node(self, leading: Awaitable[bool]) -> LiveNode:
        """Reads the Node live while ``leading`` is awaited. Its age counts from the start of the requests."""
        began = self._clock.boottime()
        node = await self._read_node(leading)
        if (passed := self._clock.boottime() - began) >= LATE:
            raise RefusedForSafety(f"how node {self._seen.name} is was answered after {passed:.0f} s only")
        self._judge_node(node)
        self._at, self._took = began, passed
        return node

    def ensure_recent(self) -> None:
        """RefusedForSafety if the last check began too long ago: a machine may boot while this process hangs.

        The same if the fencer would now hit another Node (``refusal``).
        """
        self._check_fencer()
        if (passed := self._clock.boottime() - self._at) >= LATE:
            raise RefusedForSafety(f"node {self._seen.name} was last looked at {passed:.0f} s ago")

    async def verify_during_order(self) -> None:
        """Re-checks the live Node while an order runs and raises RefusedForSafety if its state changed.

        API errors are ignored: without the API our own Lease expires and ends the order.
        """
        with suppress(ApiFailure, Unavailable, TimedOut):
            self._judge_node(await self._read_node(self._leadership.confirm_leading()))

    def recheck_cached(self) -> None:
        """RefusedForSafety if a known observation invalidates the decision; makes no request."""
        if self._seen.boot:
            self._check_boot(self._seen.boot.id)
        self._check_silence()
        self._check_fencer()

    async def _read_node(self, leading: Awaitable[bool]) -> LiveNode:
        """Reads the Node; ``leading`` answers meanwhile whether this controller leads."""
        try:
            leads, node = await asyncio.gather(leading, self._reading.read_live(self._seen))
        except NotFound:
            raise RefusedForSafety(f"node {self._seen.name} is gone") from None
        if not (leads and self._leadership.leads):
            raise RefusedForSafety(f"{self._me} does not lead any more")
        return node

    def _judge_node(self, node: LiveNode) -> None:
        """RefusedForSafety if the Node or its observations differ from the decision's input."""
        name = self._seen.name
        self._check_boot(node.status.node_info.boot_id)
        self._check_silence()
        mark = owner_mark.parse_mark(node.mark_text)
        if mark is not None and not (isinstance(mark, OwnerMark) and mark.by == self._me):
            raise RefusedForSafety(f"the mark on node {name} is not {self._me}'s any more")
        if self._decided and (
            node.mark_text != self._decided.mark_text
            or _out_of_service_taints(node.spec.taints) != _out_of_service_taints(self._decided.taints)
        ):
            raise RefusedForSafety(f"somebody has changed the mark or the taint out-of-service of node {name}")

    def _check_boot(self, boot_id: str) -> None:
        if boot_id != self._boot_id:
            raise RefusedForSafety(f"node {self._seen.name} has another boot id by now: {boot_id}")

    def _check_fencer(self) -> None:
        if why := self._refusal():
            raise RefusedForSafety(f"the fencer of node {self._seen.name} is refused: {why}")

    def _check_silence(self) -> None:
        name = self._seen.name
        if self._seen.observed != self._known[0]:
            raise RefusedForSafety(
                f"what the API server says of node {name} is older than what it said before, or it was deleted"
            )
        if self._seen.heard != self._known[1]:
            raise RefusedForSafety(f"node {name} was heard of meanwhile")

    def _is_fresh(self) -> bool:
        """Whether the next call may proceed; a sign of life from the watch counts at once."""
        return self._is_younger_than(HOLDS if self._looking else self._lookahead_seconds)

    @property
    def _lookahead_seconds(self) -> float:
        """``AHEAD``, or less if reads are slow, so that the next read is answered before this one expires."""
        return max(0.0, min(AHEAD, HOLDS - 1.5 * self._took))

    def _is_covered_since(self, asked: float) -> bool:
        """Whether a call that waits since ``asked`` may use another call's check, because that check began later.

        The check may have taken up to ``LATE``: otherwise one call after the other would query a busy server.
        """
        return self._at >= asked and self._is_younger_than(LATE)

    def _is_younger_than(self, seconds: float) -> bool:
        """Whether the last successful check, and our last renewal, are younger, and no observation invalidates them."""
        held = self._clock.boottime() < min(self._at, self._leadership.last_renewal) + seconds
        return held and self._leadership.leads and (self._seen.observed, self._seen.heard) == self._known


def _out_of_service_taints(taints: Iterable[Taint]) -> set[tuple[str, str]]:
    """Value and effect of each out-of-service taint."""
    return {(one.value, one.effect) for one in taints if one.key == names.OUT_OF_SERVICE}
