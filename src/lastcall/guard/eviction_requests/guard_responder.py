"""The responder ``lastcall.dev/guard``: has the applications of pods prepare before they are evicted."""

import logging
from datetime import UTC, datetime

from msgspec.structs import replace

from lastcall.guard.decisions.verdict import judge_removal
from lastcall.guard.eviction_requests.decisions.guard_responder import (
    GuardResponse,
    as_removal,
    decide_response,
    is_guards_turn,
    list_abandoned,
    withdraw_request,
)
from lastcall.guard.eviction_requests.each_object import skip_failure
from lastcall.model.eviction_requests import PodEviction
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod
from lastcall.model.pods import ObjectMetadata
from lastcall.ports.eviction_requests import EvictionCluster, EvictionObjects
from lastcall.ports.guard_cluster import GuardFactsReader, GuardPolicies, GuardRecords
from lastcall.ports.node import Clock

log = logging.getLogger(__name__)


class GuardResponder:
    """One round looks at every Eviction, and at every entry that stands for one."""

    def __init__(
        self,
        objects: EvictionObjects,
        cluster: EvictionCluster,
        *,
        facts: GuardFactsReader,
        records: GuardRecords,
        policies: GuardPolicies,
        clock: Clock,
    ) -> None:
        self._objects = objects
        self._cluster = cluster
        self._facts = facts
        self._records = records
        self._policies = policies
        self._clock = clock

    async def run_round(self) -> None:
        """Requests preparations, reports how far they are, and withdraws those that are not requested any more."""
        for eviction in self._objects.evictions:
            if is_guards_turn(eviction):
                async with skip_failure("Eviction", eviction.metadata):
                    await self._respond(eviction)
        if self._policies.changes < 0:
            return
        abandoned = list_abandoned(self._policies.by_key.values(), self._objects.evictions, self._now())
        for policy, held in list(abandoned):
            async with skip_failure("GuardPolicy", _metadata_of(policy)):
                await self._withdraw(policy, held)

    async def _respond(self, eviction: PodEviction) -> None:
        removal = as_removal(eviction)
        facts = await self._facts.read_removal_facts(removal, fresh=False)
        response = decide_response(eviction, facts, self._now())
        if response.is_end:  # never on facts that may be old
            facts = await self._facts.read_removal_facts(removal, fresh=True)
            response = decide_response(eviction, facts, self._now())
        await self._record(eviction, facts, response)
        if response.progress is not None:
            if response.is_end:
                log.info("pod %s/%s: %s", removal.namespace, removal.name, response.progress.message)
            await self._cluster.write_progress(eviction, response.progress)

    async def _record(self, eviction: PodEviction, facts: GuardFacts, response: GuardResponse) -> None:
        """Records the request in the policy as it is stored now, as a review does."""
        verdict = response.verdict
        if verdict is None or verdict.record is None or verdict.policy is None:
            return
        removal = as_removal(eviction)

        def change(current: GuardPolicy, _: HeldPod | None) -> HeldPod | None:
            others = tuple(one for one in facts.policies if one.metadata.uid != current.metadata.uid)
            return judge_removal(removal, replace(facts, policies=(*others, current)), self._now()).record

        await self._records.change_entry(verdict.policy, verdict.record.uid, change)
        self._facts.forget(verdict.policy.metadata.namespace)

    async def _withdraw(self, policy: GuardPolicy, held: HeldPod) -> None:
        log.info("pod %s/%s: its eviction is not requested any more", policy.metadata.namespace, held.name)

        def change(_: GuardPolicy, stored: HeldPod | None) -> HeldPod | None:
            return withdraw_request(stored, self._now()) if stored else None

        await self._records.change_entry(policy, held.uid, change)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.wall(), UTC)


def _metadata_of(policy: GuardPolicy) -> ObjectMetadata:
    return ObjectMetadata(name=policy.name, namespace=policy.metadata.namespace)
