"""Answers the AdmissionReview of an uninstallation: ends all holds, and has the leader undo what it has prepared."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lastcall.aio import timeout
from lastcall.errors import LastcallError
from lastcall.guard.decisions.undoing import UnfinishedPreparation, describe_unfinished, list_unfinished, request_undo
from lastcall.model.admission import answer_review, parse_review
from lastcall.model.guard_policy import GuardPolicy, HeldPod
from lastcall.ports.guard_cluster import GuardFactsReader, GuardHolds, GuardRecords
from lastcall.ports.node import Clock

UNDO_SECONDS = 25.0
"""The answer takes no longer: less than the API server waits."""

LOOK_SECONDS = 1.0
"""Between two looks at what is left. An API server may show a request for so long after the webhooks are gone."""

log = logging.getLogger(__name__)


class Uninstallation:
    """Any replica runs it. The request is recorded in the entries, which outlive the guard, and the leader carries it out."""

    def __init__(self, holds: GuardHolds, facts: GuardFactsReader, records: GuardRecords, clock: Clock) -> None:
        self._holds = holds
        self._facts = facts
        self._records = records
        self._clock = clock

    async def answer(self, data: bytes, *, is_authenticated: bool) -> dict[str, Any]:
        """The AdmissionReview that answers the one in ``data``, always an allowance; its warnings say what is left.

        InvalidInput if it is none. A dry run, and a request that does not come from the API server, change nothing.
        """
        review = parse_review(data, "AdmissionReview")
        if review.is_dry_run or not is_authenticated:
            return answer_review(review, allowed=True)
        return answer_review(review, allowed=True, warnings=tuple(await self._undo_all()))

    async def _undo_all(self) -> Sequence[str]:
        """Sentences about what is not undone in time."""
        log.warning("the guard is to be uninstalled: all holds end, and preparations are undone")
        rounds = _Rounds()
        try:
            async with timeout(UNDO_SECONDS):
                while not rounds.is_over:
                    await self._run_round(rounds)
                    await self._clock.sleep(LOOK_SECONDS)
        except TimeoutError:
            pass  # what is left is told
        left = [*([rounds.problem] if rounds.problem else []), *describe_unfinished(rounds.left)]
        for sentence in left:
            log.warning("%s", sentence)
        return left

    async def _run_round(self, rounds: "_Rounds") -> None:
        try:
            await self._holds.end()
            left = list_unfinished(await self._facts.read_policies(""))
            for policy, held in left:
                await self._records.change_entry(policy, held.uid, self._request)
            rounds.note_left(left)
        except LastcallError as error:
            rounds.note_problem(f"the guard cannot undo all its preparations: {error}")

    def _request(self, _: GuardPolicy, held: HeldPod | None) -> HeldPod | None:
        return request_undo(held, datetime.fromtimestamp(self._clock.wall(), UTC))


class _Rounds:
    """What the last round has found; two in a row without anything left are enough."""

    def __init__(self) -> None:
        self.left: Sequence[UnfinishedPreparation] = ()
        self.problem = ""
        self._empty = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to undo, and nothing new comes."""
        return self._empty >= 2

    def note_left(self, left: Sequence[UnfinishedPreparation]) -> None:
        self.left, self.problem = left, ""
        self._empty = 0 if left else self._empty + 1

    def note_problem(self, problem: str) -> None:
        self.problem, self._empty = problem, 0
