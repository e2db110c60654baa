"""Looks up the replacements of a node's lost pods: whether they run and are Ready elsewhere, for output only."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from lastcall.errors import LastcallError
from lastcall.failover.controller.controller_ports import FailoverApi
from lastcall.failover.decisions import replacement_backoff, replacement_tracking
from lastcall.failover.decisions.case import Case
from lastcall.failover.evidence.lost_pods import STATEFUL, LostPod
from lastcall.failover.evidence.replacement_match import match_replacements
from lastcall.model.observed import FailoverPod
from lastcall.ports.node import Clock


class ReplacementFinder:
    """The lookups of one node. The mark records the lost pods; this class keeps only matches and failed lookups."""

    def __init__(self, cluster: FailoverApi, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._places: Mapping[str, str] = {}
        self._asked: Mapping[str, replacement_backoff.LookupAttempts] = {}

    async def find_replacements(self, case: Case) -> Mapping[str, bool]:
        """``Case.replacements``. A Ready replacement is not looked up again, the others with increasing pauses."""
        known = {one.uid for one in replacement_tracking.known_lost_pods(case)}
        self._asked = {uid: asked for uid, asked in self._asked.items() if uid in known}
        missing = [one for one in replacement_tracking.pods_to_look_up(case) if one.uid not in self._places]
        now = self._clock.boottime()
        try:
            for lost in replacement_backoff.due_lookups(missing, self._asked, now):
                self._asked = replacement_backoff.count_lookups(lost, self._asked, now)
                await self._search_pages(lost, case)
        except LastcallError:
            pass  # what was found before counts; it is asked for again as if there were none
        return replacement_tracking.replacement_readiness(case, self._places.keys())

    async def _search_pages(self, lost: Sequence[LostPod], case: Case) -> None:
        """Reads page by page until each lost pod has a match, and no further."""
        async with aclosing(self._candidate_pages(lost[0])) as pages:
            async for page in pages:
                self._places = match_replacements(
                    replacement_tracking.pods_to_look_up(case), page, node=case.name, before=self._places
                )
                if all(one.uid in self._places for one in lost):
                    return

    async def _candidate_pages(self, one: LostPod) -> AsyncGenerator[Sequence[FailoverPod], None]:
        if one.kind == STATEFUL:
            pod = await self._cluster.read_pod(one.namespace, one.name)
            yield [pod] if pod else []
            return
        async with aclosing(self._cluster.list_pods_by_labels(one.namespace, one.labels)) as pages:
            async for page in pages:
                yield page
