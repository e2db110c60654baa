"""Takes the steps of one held pod's preparation, as ``guard.decisions.preparation`` decides them."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeGuard

from msgspec.structs import replace

from lastcall.aio import Signal, timeout, wait_first
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.guard.decisions import preparation_outcomes as outcomes
from lastcall.guard.decisions.nudge import is_evicted_by_taint
from lastcall.guard.decisions.preparation import CHECK_SECONDS, PreparationStep, PreparationTurn, decide_preparation
from lastcall.guard.decisions.preparation_events import describe_limit, is_limit_exceeded, list_events
from lastcall.guard.decisions.replacement import is_application_gone
from lastcall.guard.decisions.requesters import is_taint_eviction
from lastcall.guard.decisions.reservations import list_members, pods_in_front
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod, PreparationState
from lastcall.model.pods import ObjectMetadata, Pod
from lastcall.ports.guard import GuardedMember, GuardProvider, PreparationProgress
from lastcall.ports.guard_cluster import EntryChange, GuardActions, GuardFactsReader, GuardProviders, GuardRecords
from lastcall.ports.node import Clock

PROVIDER_SECONDS = 30.0
"""A call of a provider takes no longer."""

log = logging.getLogger(__name__)

Change = Callable[[HeldPod], HeldPod]


@dataclass(frozen=True, kw_only=True)
class WorkerPorts:
    """What a worker reads, writes and calls."""

    facts: GuardFactsReader
    records: GuardRecords
    actions: GuardActions
    providers: GuardProviders
    clock: Clock


class PreparationWorker:
    """Prepares one pod of one policy until its entry is gone.

    Only the leader runs workers; but each write is a compare-and-set, and each call of the provider may be repeated, so
    that two leaders at a time do no harm.
    """

    def __init__(self, ports: WorkerPorts, policy: GuardPolicy, uid: str) -> None:
        self._ports = ports
        self._policy = policy
        self._uid = uid
        self._checked_at: datetime | None = None
        self._limit_told = False
        self._woken = Signal()
        self._facts = GuardFacts()

    async def run(self) -> None:
        """Takes one step after another; returns when the entry or the policy is gone."""
        while True:
            try:
                held = await self._read_entry()
            except LastcallError as error:
                log.warning("pod %s: the cluster cannot be read: %s", self._title(), error)
                await self._ports.clock.sleep(CHECK_SECONDS)
                continue
            if held is None:
                return
            await self._take_step(held)

    async def _read_entry(self) -> HeldPod | None:
        """The entry as it is now, with the facts around it; None if it is gone.

        A pod that began a moment ago may be missing in what is remembered, and would count as gone: then all is read now.
        """
        for fresh in (False, True):
            facts = await self._ports.facts.read_namespace_facts(self._policy.metadata.namespace, fresh=fresh)
            found = next((one for one in facts.policies if one.metadata.uid == self._policy.metadata.uid), None)
            held = found.find_pod(self._uid) if found else None
            if found is None or held is None:
                return None
            self._policy, self._facts = found, facts
            if held.state is PreparationState.RELEASED or _find_pod(held, facts):
                break
        return held

    def wake(self) -> None:
        """Has it look again now: the policy has changed."""
        self._woken.set()

    async def undo(self) -> None:
        """Cancels or releases what was prepared for a policy that is gone: nothing is recorded. Errors are logged."""
        held = self._policy.find_pod(self._uid)
        if held is None:
            return
        try:
            facts = await self._ports.facts.read_namespace_facts(self._policy.metadata.namespace, fresh=True)
            self._facts = replace(facts, policies=(self._policy,))
            provider = self._ports.providers.make_policy_provider(self._policy)
            member = self._member(held)
            async with timeout(PROVIDER_SECONDS):
                await (provider.cancel(member) if _find_pod(held, self._facts) else provider.release(member))
            log.info("pod %s: its preparation is undone, since its GuardPolicy is gone", self._title(held))
        except (LastcallError, TimeoutError) as error:
            log.warning("pod %s: its preparation is not undone: %s", self._title(held), error or "no answer in time")

    # -- one step ------------------------------------------------------------------------------------------------------

    async def _take_step(self, held: HeldPod) -> None:
        now = self._now()
        await self._tell_limit(held, now)
        next_step = decide_preparation(held, self._policy, self._facts, now, checked_at=self._checked_at)
        if next_step.step is PreparationStep.WAIT:
            await self._wait(next_step, now)
            return
        log.info(
            "pod %s: %s%s", self._title(held), next_step.step.value, f" ({next_step.reason})" * bool(next_step.reason)
        )
        try:
            await self._execute(next_step, held)
        except (Unavailable, TimedOut, TimeoutError) as error:
            await self._fail(held, str(error) or "no answer in time", is_unreachable=True)
        except LastcallError as error:
            await self._fail(held, str(error), is_unreachable=False)

    async def _wait(self, step: PreparationTurn, now: datetime) -> None:
        """Until the time of the step, or the policy changes. What only pods show is looked for every two seconds."""
        left = (step.until - now).total_seconds() if step.until else CHECK_SECONDS
        seconds = max(left, 0.05) if step.is_over else min(max(left, 0.05), CHECK_SECONDS)
        await wait_first(self._ports.clock.sleep(seconds), self._woken.next())

    async def _execute(self, step: PreparationTurn, held: HeldPod) -> None:
        if step.step is PreparationStep.FORGET:
            await self._ports.records.remove_entry(self._policy, held.uid)
            self._ports.facts.forget(self._policy.metadata.namespace)
        elif step.step is PreparationStep.NUDGE:
            await self._nudge(held)
        else:
            provider = self._ports.providers.make_policy_provider(self._policy)
            async with timeout(PROVIDER_SECONDS):
                await self._ask_provider(step, held, provider)

    async def _ask_provider(self, step: PreparationTurn, held: HeldPod, provider: GuardProvider) -> None:
        match step.step:
            case PreparationStep.START:
                await self._start(held, provider)
            case PreparationStep.CHECK:
                await self._check(held, provider)
            case PreparationStep.CANCEL:
                await self._cancel(held, provider, step.reason)
            case PreparationStep.RELEASE:
                await self._release(held, provider, step.reason)

    async def _start(self, held: HeldPod, provider: GuardProvider) -> None:
        member = self._member(held)
        health = await provider.check_health(member)
        now = self._now()
        if not health.is_healthy:
            await self._write(held, lambda one: outcomes.record_unhealthy(one, health.message, now))
            return
        if await self._reserve(held, now):
            await provider.prepare(member)

    async def _reserve(self, held: HeldPod, now: datetime) -> bool:
        """Records the start, unless another pod has taken the place meanwhile."""

        def change(current: GuardPolicy, stored: HeldPod | None) -> HeldPod | None:
            pod = _find_pod(held, self._facts)
            if not _is_known(stored) or pod is None or pods_in_front(pod, current, self._facts):
                return None
            return outcomes.record_start(stored, now)

        stored = await self._change_entry(held, change)
        if stored is None or stored.prepared_at is None or stored.state is not PreparationState.PREPARING:
            return False
        await self._tell(held, stored)
        return True

    async def _check(self, held: HeldPod, provider: GuardProvider) -> None:
        asked = self._checked_at = self._now()
        member = self._member(held)
        report = await provider.check_progress(member)
        await self._write(held, lambda one: outcomes.record_report(one, report, asked))
        if report.progress is PreparationProgress.LOST:
            await provider.prepare(member)

    async def _cancel(self, held: HeldPod, provider: GuardProvider, why: str) -> None:
        if held.prepared_at is not None:
            await provider.cancel(self._member(held))
        await self._write(held, lambda one: outcomes.record_release(one, why, self._now()))

    async def _release(self, held: HeldPod, provider: GuardProvider, why: str) -> None:
        member = self._member(held)
        waits = held.is_reserving and held.undo_requested_at is None
        if waits and not is_application_gone(held, self._facts):
            health = await provider.check_health(member)
            if not health.is_healthy:
                await self._write(held, lambda one: outcomes.record_unhealthy_release(one, health.message, self._now()))
                return
        if held.prepared_at is not None:
            await provider.release(member)
        await self._write(held, lambda one: outcomes.record_release(one, why, self._now()))

    async def _nudge(self, held: HeldPod) -> None:
        pod = _find_pod(held, self._facts)
        if pod is None:
            return
        if is_taint_eviction(held.requested_by) and not await self._is_evicted(pod):
            async with timeout(PROVIDER_SECONDS):
                provider = self._ports.providers.make_policy_provider(self._policy)
                await self._cancel(held, provider, "no taint of its node evicts it any more")
        else:
            await self._ports.actions.delete_pod(pod, held.grace_period_seconds)
            await self._ports.clock.sleep(CHECK_SECONDS)  # until the list of pods shows it

    async def _is_evicted(self, pod: Pod) -> bool:
        return is_evicted_by_taint(await self._ports.facts.read_pod_taints(pod), self._now())

    async def _fail(self, held: HeldPod, message: str, *, is_unreachable: bool) -> None:
        log.warning("pod %s: %s", self._title(held), message)
        now = self._now()
        gone = _find_pod(held, self._facts) is None and is_application_gone(held, self._facts)

        def change(one: HeldPod) -> HeldPod:
            if outcomes.is_release_given_up(one, is_application_gone=gone):
                return outcomes.record_release(one, f"could not be released: {message}", now)
            return outcomes.record_failure(one, message, now, is_unreachable=is_unreachable)

        try:
            await self._write(held, change)
        except LastcallError as error:
            log.warning("pod %s: its entry cannot be written: %s", self._title(held), error)
            await self._ports.clock.sleep(CHECK_SECONDS)

    # -- within --------------------------------------------------------------------------------------------------------

    async def _write(self, held: HeldPod, change: Change) -> None:
        def change_stored(_: GuardPolicy, stored: HeldPod | None) -> HeldPod | None:
            changed = change(stored) if _is_known(stored) else None
            return None if changed == stored else changed

        stored = await self._change_entry(held, change_stored)
        if stored:
            await self._tell(held, stored)

    async def _change_entry(self, held: HeldPod, change: EntryChange) -> HeldPod | None:
        """As ``GuardRecords.change_entry``. From then on no review of this process rests on what was before."""
        is_changed = False

        def note_change(current: GuardPolicy, stored: HeldPod | None) -> HeldPod | None:
            nonlocal is_changed
            changed = change(current, stored)
            is_changed = is_changed or changed is not None
            return changed

        try:
            return await self._ports.records.change_entry(self._policy, held.uid, note_change)
        finally:
            if is_changed:  # an error may have come after the write
                self._ports.facts.forget(self._policy.metadata.namespace)

    async def _tell(self, before: HeldPod, after: HeldPod) -> None:
        for event in list_events(before, after, self._policy):
            await self._ports.actions.write_event(
                self._member(after).pod, event.reason.value, event.message, is_warning=event.reason.is_warning
            )

    async def _tell_limit(self, held: HeldPod, now: datetime) -> None:
        if self._limit_told or not is_limit_exceeded(held, self._policy, now):
            return
        self._limit_told = True
        event = describe_limit(self._policy)
        await self._ports.actions.write_event(
            self._member(held).pod, event.reason.value, event.message, is_warning=event.reason.is_warning
        )

    def _member(self, held: HeldPod) -> GuardedMember:
        pod = _find_pod(held, self._facts)
        if pod is None:
            gone = ObjectMetadata(name=held.name, namespace=self._policy.metadata.namespace, uid=held.uid)
            pod = Pod(metadata=gone)
        members = list_members(held.group, self._policy, self._facts)
        return GuardedMember(pod=pod, others=tuple(one for one in members if one.metadata.uid != held.uid))

    def _title(self, held: HeldPod | None = None) -> str:
        return f"{self._policy.metadata.namespace}/{held.name if held else self._uid}"

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ports.clock.wall(), UTC)


def _is_known(stored: HeldPod | None) -> TypeGuard[HeldPod]:
    """Whether this version of the guard may change the entry."""
    return stored is not None and stored.state is not PreparationState.UNKNOWN


def _find_pod(held: HeldPod, facts: GuardFacts) -> Pod | None:
    return next((one for one in facts.pods if one.metadata.uid == held.uid), None)
