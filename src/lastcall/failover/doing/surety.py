"""Made sure of, live, before what cannot be undone: that we lead, that the mark is ours, and that the boot is the same."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from lastcall import names
from lastcall.errors import ApiFailure, LastcallError, NotFound, RefusedForSafety, TimedOut, Unavailable
from lastcall.failover.deciding.case import NodeNow
from lastcall.failover.doing.outside import Leadership
from lastcall.failover.doing.reading import LASTS, NEVER, Reading
from lastcall.failover.knowing import owner
from lastcall.failover.knowing.owner import OwnerMark
from lastcall.failover.knowing.sightings import Sightings
from lastcall.model.observed import LiveNode
from lastcall.model.tolerations import Taint
from lastcall.ports import Clock

HOLDS = 1.0
"""Seconds, from the question on, for which what was made sure of holds for the next call of the same step: pods go by the
hundred. Nothing is left to a watch meanwhile, which may be silent: the Node and its Lease are read live each time."""
LATE = 5.0
"""Seconds after which an answer comes too late: what it says may be over, and nothing that is done now follows from it."""
AHEAD = LASTS
"""Seconds after which one call looks again while the others go on: all would wait else, once a second, for a busy server."""


class Surety:
    """For one step about one boot of a node; ``observed``, ``heard`` and ``node`` as the decision was made with.

    A sign of life since then undoes it, and so does a person who takes the mark or the taint away. ``reading`` is what was
    read live for the decision: for ``check`` it is a first look. ``refusal`` says why a fencer is not used, or nothing.
    """

    def __init__(
        self,
        reading: Reading,
        leadership: Leadership,
        clock: Clock,
        seen: Sightings,
        *,
        me: str,
        boot_id: str,
        observed: float,
        heard: float | None,
        node: NodeNow | None,
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
        """Seconds until the last look was answered."""
        self._lock = asyncio.Lock()
        self._looking = False
        self._looks = 0
        self._failure: LastcallError | None = None
        """Of the last look."""

    async def check(self) -> None:
        """RefusedForSafety if it is not so any more; the API's error if that cannot be known."""
        if self._fresh():
            return
        asked, before = self._clock.boottime(), self._looks
        async with self._lock:
            if self._fresh() or self._looked(asked):
                return
            if self._failure and self._looks != before:
                raise self._failure  # of the look that was waited for: not each of those who wait looks for itself
            await self._again()

    async def _again(self) -> None:
        """What is not so any more holds for nobody, however short a time ago it was so."""
        self._looking, self._failure = True, None
        try:
            if not await self._already():
                await self.look()
        except BaseException as error:
            self._at = NEVER
            self._failure = error if isinstance(error, LastcallError) else None
            raise
        finally:
            self._looking = False
            self._looks += 1

    async def _already(self) -> bool:
        """Whether what was read last is new enough; so may be the last renewal of our own lease."""
        if self._reading.now(self._seen) is None or self._clock.boottime() >= self._reading.asked + self._ahead:
            return False
        now, led = self._clock.boottime(), self._leadership.renewed
        if now >= led + AHEAD:
            if not await self._leadership.confirm():
                raise RefusedForSafety(f"{self._me} does not lead any more")
            led = now
        node = self._reading.now(self._seen)  # what was heard while we asked counts
        if node is None:
            return False
        self._judge(node)
        self._at = min(self._reading.asked, led)
        return self._fresh()

    async def look(self) -> LiveNode:
        """The same, always read anew; the Node as it is. What is asked at the same time is as old as the question."""
        began = self._clock.boottime()
        node = await self._read()
        if (passed := self._clock.boottime() - began) >= LATE:
            raise RefusedForSafety(f"how node {self._seen.name} is was answered after {passed:.0f} s only")
        self._judge(node)
        self._at, self._took = began, passed
        return node

    def recent(self) -> None:
        """RefusedForSafety if the last look was asked for too long ago: a machine boots while we stand still.

        So it is if another Node would be struck by now (``refusal``).
        """
        self._spared()
        if (passed := self._clock.boottime() - self._at) >= LATE:
            raise RefusedForSafety(f"node {self._seen.name} was last looked at {passed:.0f} s ago")

    async def still(self) -> None:
        """RefusedForSafety if a live look undoes what is under way, however late it is answered.

        Nothing if it is not answered: who cannot reach the API server does not renew his lease, which ends it as well.
        """
        with suppress(ApiFailure, Unavailable, TimedOut):
            self._judge(await self._read())

    def listen(self) -> None:
        """RefusedForSafety if what was heard since undoes it; nobody is asked."""
        if self._seen.boot:
            self._same(self._seen.boot.id)
        self._unheard()
        self._spared()

    async def _read(self) -> LiveNode:
        """The Node as it is, while we lead."""
        try:
            leads, node = await asyncio.gather(self._leadership.confirm(), self._reading.anew(self._seen))
        except NotFound:
            raise RefusedForSafety(f"node {self._seen.name} is gone") from None
        if not leads:
            raise RefusedForSafety(f"{self._me} does not lead any more")
        return node

    def _judge(self, node: LiveNode) -> None:
        """RefusedForSafety if the Node, or what was heard of it, is not what the decision was made from."""
        name = self._seen.name
        self._same(node.status.node_info.boot_id)
        self._unheard()
        mark = owner.read(node.mark)
        if mark is not None and not (isinstance(mark, OwnerMark) and mark.by == self._me):
            raise RefusedForSafety(f"the mark on node {name} is not {self._me}'s any more")
        if self._decided and (
            node.mark != self._decided.mark_text
            or _out_of_service(node.spec.taints) != _out_of_service(self._decided.taints)
        ):
            raise RefusedForSafety(f"somebody has changed the mark or the taint out-of-service of node {name}")

    def _same(self, boot_id: str) -> None:
        if boot_id != self._boot_id:
            raise RefusedForSafety(f"node {self._seen.name} has another boot id by now: {boot_id}")

    def _spared(self) -> None:
        if why := self._refusal():
            raise RefusedForSafety(f"the fencer of node {self._seen.name} is refused: {why}")

    def _unheard(self) -> None:
        name = self._seen.name
        if self._seen.observed != self._known[0]:
            raise RefusedForSafety(
                f"what the API server says of node {name} is older than what it said before, or it was deleted"
            )
        if self._seen.heard != self._known[1]:
            raise RefusedForSafety(f"node {name} was heard of meanwhile")

    def _fresh(self) -> bool:
        """Whether the next call may go; what was heard of the node meanwhile by the watch counts at once."""
        return self._younger(HOLDS if self._looking else self._ahead)

    @property
    def _ahead(self) -> float:
        """``AHEAD``, or so many seconds fewer that the next look is answered before this one is too old, if looks take long."""
        return max(0.0, min(AHEAD, HOLDS - 1.5 * self._took))

    def _looked(self, asked: float) -> bool:
        """Whether who has waited since ``asked`` has the look of another, as one of his own: it was begun since.

        However long it took, up to ``LATE``: a busy server would be asked by one call after the other else.
        """
        return self._at >= asked and self._younger(LATE)

    def _younger(self, seconds: float) -> bool:
        """Whether the last good look was begun less than ``seconds`` ago, and nothing that is known here undoes it."""
        held = self._clock.boottime() < self._at + seconds
        return held and self._leadership.leads and (self._seen.observed, self._seen.heard) == self._known


def _out_of_service(taints: Iterable[Taint]) -> set[tuple[str, str]]:
    """Value and effect of each taint out-of-service."""
    return {(one.value, one.effect) for one in taints if one.key == names.OUT_OF_SERVICE}
