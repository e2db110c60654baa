"""Answers AdmissionReviews: reads the cluster, decides, records the request, and answers within a bounded time."""

import logging
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any
from weakref import ref

from msgspec import json
from msgspec.structs import replace

from lastcall.aio import timeout
from lastcall.errors import LastcallError
from lastcall.guard.controller.allowance_memory import AllowanceMemory
from lastcall.guard.controller.refusal_memory import Question, Refusal, RefusalMemory, read_question
from lastcall.guard.decisions.exemptions import find_request_exemption
from lastcall.guard.decisions.hold_text import describe_other_refusal
from lastcall.guard.decisions.request_record import record_other_refusal
from lastcall.guard.decisions.verdict import NOT_GUARDED, READY, RemovalVerdict, judge_removal
from lastcall.model.admission import Removal, Review, answer_review, parse_review
from lastcall.model.guard_config import DEFAULTS, GuardConfig
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod
from lastcall.ports.guard_cluster import GuardFactsReader, GuardRecords
from lastcall.ports.node import Clock

ANSWER_SECONDS = 1.0
"""An answer takes no longer: with failurePolicy Ignore, a webhook that is too late allows the deletion."""

_MOST_TOLD = 1000
"""Pods whose last refusal is remembered; all are told again beyond them."""

ReviewObserver = Callable[[Removal, RemovalVerdict, float], None]
"""Hears of each answer about a removal, and how many seconds it took."""

log = logging.getLogger(__name__)


class ReviewService:
    """Decides about removals. Every replica of the guard runs one; the state is in the Kubernetes API alone."""

    def __init__(
        self,
        facts: GuardFactsReader,
        records: GuardRecords,
        clock: Clock,
        observe: ReviewObserver = lambda removal, verdict, seconds: None,
        config: GuardConfig = DEFAULTS,
    ) -> None:
        self._facts = facts
        self._records = records
        self._clock = clock
        self._observe = observe
        self._config = config
        self._told: dict[tuple[str, str], str] = {}
        self._refusals = RefusalMemory()
        self._allowances = AllowanceMemory()

    async def answer(self, data: bytes, *, is_authenticated: bool = True) -> dict[str, Any]:
        """The AdmissionReview that answers the one in ``data``. InvalidInput if that is none.

        A request that does not come from the API server is answered, and starts nothing. What cannot be decided in time
        is refused, so that the client asks again.
        """
        answer = self.begin_answer(data, is_authenticated=is_authenticated)
        found: dict[str, Any] = json.decode(answer if isinstance(answer, bytes) else await answer)
        return found

    def begin_answer(self, data: bytes, *, is_authenticated: bool = True) -> bytes | Coroutine[Any, Any, bytes]:
        """The same as JSON, at once if it waits for nothing: by the request itself, or a refusal by what is remembered."""
        begun = self._clock.boottime()
        question = read_question(data)
        if question and (again := self._refuse_again(question, begun)):
            return again
        review = parse_review(data, "AdmissionReview")
        if review.removal is None:
            return json.encode(answer_review(review, allowed=True, audit={"reason": "not-a-removal"}))
        verdict, facts = self._judge_at_once(review.removal, is_authenticated=is_authenticated)
        if verdict is None:
            return self._answer_in_time(review, review.removal, begun, is_authenticated=is_authenticated)
        answer = self._tell_verdict(review, review.removal, verdict, begun)
        if question and facts and is_authenticated:
            self._refusals.remember(question, review.uid, Refusal(review.removal, verdict, ref(facts), answer))
        return answer

    def _refuse_again(self, question: Question, begun: float) -> bytes | None:
        """The answer to what was refused a moment ago, on facts that count still."""
        found = self._refusals.find(question)
        facts = found.refusal.facts() if found else None
        if found is None or facts is None or not self._facts.counts_still(found.refusal.removal, facts):
            return None
        self._note_verdict(found.refusal.removal, found.refusal.verdict, begun)
        return found.answer

    async def _answer_in_time(self, review: Review, removal: Removal, begun: float, *, is_authenticated: bool) -> bytes:
        verdict = await self._judge_in_time(removal, is_authenticated=is_authenticated)
        return self._tell_verdict(review, removal, verdict, begun)

    def _tell_verdict(self, review: Review, removal: Removal, verdict: RemovalVerdict, begun: float) -> bytes:
        self._note_verdict(removal, verdict, begun)
        return json.encode(
            answer_review(
                review,
                allowed=verdict.allowed,
                message=verdict.message,
                warnings=verdict.warnings,
                audit={"reason": verdict.reason},
            )
        )

    def _note_verdict(self, removal: Removal, verdict: RemovalVerdict, begun: float) -> None:
        self._observe(removal, verdict, self._clock.boottime() - begun)
        self._log_verdict(removal, verdict)

    def _judge_at_once(
        self, removal: Removal, *, is_authenticated: bool
    ) -> tuple[RemovalVerdict | None, GuardFacts | None]:
        """The verdict, None if something has to be read or recorded before; and what is remembered, if it rests on that."""
        if exemption := find_request_exemption(removal, self._config):
            return RemovalVerdict(allowed=True, reason=exemption.value), None
        facts = self._facts.recall_removal_facts(removal)
        verdict = judge_removal(removal, facts, self._now()) if facts else None
        if verdict is None or verdict.allowed or (verdict.record and is_authenticated):
            return None, None
        return verdict, facts

    async def _judge_in_time(self, removal: Removal, *, is_authenticated: bool) -> RemovalVerdict:
        try:
            async with timeout(ANSWER_SECONDS):
                return await self._judge(removal, is_authenticated=is_authenticated)
        except TimeoutError:
            return _refuse_for_now(removal, f"the API server did not answer within {ANSWER_SECONDS:g} s")
        except LastcallError as error:
            return _refuse_for_now(removal, str(error))

    async def _judge(self, removal: Removal, *, is_authenticated: bool) -> RemovalVerdict:
        facts = await self._facts.read_removal_facts(removal, fresh=False)
        verdict = judge_removal(removal, facts, self._now())
        if verdict.allowed:  # by facts that may be too old: a new pod is not found, nor a new policy
            if unguarded := await self._judge_unguarded(removal, verdict):
                return unguarded
            facts = await self._facts.read_removal_facts(removal, fresh=True)
            verdict = judge_removal(removal, facts, self._now())
        if is_authenticated and verdict.record and verdict.policy:
            await self._record(removal, facts, verdict.policy, verdict.record)
        if is_authenticated and verdict.reason == READY and verdict.policy and not removal.is_dry_run:
            return await self._note_allowance(removal, verdict, verdict.policy)
        return verdict

    async def _judge_unguarded(self, removal: Removal, remembered: RemovalVerdict) -> RemovalVerdict | None:
        """The allowance of a pod that the request shows and no policy guards, for which the policies alone are read.

        None if something else matters too.
        """
        if removal.pod is None or remembered.reason != NOT_GUARDED:
            return None
        policies = await self._facts.read_policies(removal.namespace)
        verdict = judge_removal(removal, GuardFacts(policies=policies, config=self._config), self._now())
        return verdict if verdict.reason == NOT_GUARDED and not verdict.warnings else None

    async def _record(self, removal: Removal, facts: GuardFacts, policy: GuardPolicy, record: HeldPod) -> None:
        """Records the request in the policy as it is stored now: another pod may have taken the place meanwhile."""

        def change(current: GuardPolicy, _: HeldPod | None) -> HeldPod | None:
            others = tuple(one for one in facts.policies if one.metadata.uid != current.metadata.uid)
            return judge_removal(removal, replace(facts, policies=(*others, current)), self._now()).record

        await self._records.change_entry(policy, record.uid, change)
        self._facts.forget(policy.metadata.namespace)

    async def _note_allowance(self, removal: Removal, verdict: RemovalVerdict, policy: GuardPolicy) -> RemovalVerdict:
        """With a warning, and a record, if this preparation was allowed before: then something else has refused it."""
        now, held = self._now(), policy.find_pod(verdict.uid)
        before = self._allowances.note(verdict.uid, now)
        if before is None or (held and held.since and before < held.since):
            return verdict
        try:
            await self._records.change_entry(
                policy, verdict.uid, lambda _, held: record_other_refusal(held, before, now)
            )
        except LastcallError as error:
            log.warning("pod %s/%s: that it was refused is not recorded: %s", removal.namespace, removal.name, error)
        warning = describe_other_refusal(f"{removal.namespace}/{removal.name}", before)
        return replace(verdict, warnings=(*verdict.warnings, warning))

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)

    def _log_verdict(self, removal: Removal, verdict: RemovalVerdict) -> None:
        """A refused client asks again and again: the same reason once more is of interest for debugging alone."""
        is_news = verdict.allowed or self._told.get((removal.namespace, removal.name)) != verdict.reason
        if is_news:
            self._note_told(removal, verdict)
        elif not log.isEnabledFor(logging.DEBUG):
            return
        log.log(
            logging.INFO if is_news else logging.DEBUG,
            "%s of pod %s/%s by %s is %s: %s",
            removal.kind.value,
            removal.namespace,
            removal.name,
            removal.user.username or "an unknown user",
            "allowed" if verdict.allowed else "refused",
            verdict.reason if verdict.allowed else verdict.message,
        )

    def _note_told(self, removal: Removal, verdict: RemovalVerdict) -> None:
        key = (removal.namespace, removal.name)
        if verdict.allowed:
            self._told.pop(key, None)
            return
        if key not in self._told and len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[key] = verdict.reason


def _refuse_for_now(removal: Removal, why: str) -> RemovalVerdict:
    message = f"pod {removal.namespace}/{removal.name} is held: the guard cannot decide now ({why}); ask again"
    return RemovalVerdict(allowed=False, reason="undecided", message=message)
