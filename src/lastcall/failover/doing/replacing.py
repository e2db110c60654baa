"""Looks for what takes the place of pods that a node has lost: whether it runs and is Ready elsewhere, for people."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from lastcall.errors import LastcallError
from lastcall.failover.deciding import following, seeking
from lastcall.failover.deciding.case import Case
from lastcall.failover.doing.outside import Cluster
from lastcall.failover.knowing.lost import STATEFUL, Lost
from lastcall.failover.knowing.replaced import replaced
from lastcall.model.observed import LivePod
from lastcall.ports import Clock


class Replacements:
    """Of one node. What was lost stands in the mark; only what was found, and asked for in vain, is remembered here."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._places: Mapping[str, str] = {}
        self._asked: Mapping[str, seeking.Asked] = {}

    async def look(self, case: Case) -> Mapping[str, bool]:
        """``Case.replacements``. One that was Ready is not asked for again, the others after a pause that grows."""
        known = {one.uid for one in following.known(case)}
        self._asked = {uid: asked for uid, asked in self._asked.items() if uid in known}
        missing = [one for one in following.asked(case) if one.uid not in self._places]
        now = self._clock.boottime()
        try:
            for lost in seeking.questions(missing, self._asked, now):
                self._asked = seeking.again(lost, self._asked, now)
                await self._find(lost, case)
        except LastcallError:
            pass  # what was found before counts; it is asked for again as if there were none
        return following.told(case, self._places.keys())

    async def _find(self, lost: Sequence[Lost], case: Case) -> None:
        """Page by page, until each has its place: what is not needed is not read."""
        async with aclosing(self._found(lost[0])) as pages:
            async for page in pages:
                self._places = replaced(following.asked(case), page, node=case.name, before=self._places)
                if all(one.uid in self._places for one in lost):
                    return

    async def _found(self, one: Lost) -> AsyncGenerator[Sequence[LivePod], None]:
        if one.kind == STATEFUL:
            pod = await self._cluster.pod(one.namespace, one.name)
            yield [pod] if pod else []
            return
        async with aclosing(self._cluster.pods_like(one.namespace, one.labels)) as pages:
            async for page in pages:
                yield page
