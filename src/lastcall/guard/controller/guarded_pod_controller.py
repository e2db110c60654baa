"""Keeps the conditions of guarded pods, and requests preparations for nodes that shut down: work of the guard that leads."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from lastcall.aio import wait_first
from lastcall.errors import InvalidInput, LastcallError
from lastcall.guard.decisions.node_shutdowns import is_shutting_down, list_shutdown_requests, request_by_shutdown
from lastcall.guard.decisions.pod_conditions import ConditionChange, list_condition_changes
from lastcall.guard.decisions.policy_conditions import accepted_condition
from lastcall.model.guard_facts import GuardFacts
from lastcall.model.guard_policy import GuardPolicy, HeldPod
from lastcall.model.guard_policy_rules import guard_violations
from lastcall.model.pods import StatusCondition
from lastcall.ports.guard_cluster import (
    GuardActions,
    GuardFactsReader,
    GuardPolicies,
    GuardProviders,
    GuardRecords,
    NodeShutdowns,
)
from lastcall.ports.node import Clock

LOOK_SECONDS = 15.0
"""Between two looks at all guarded namespaces: a new pod gets its condition within this time."""

WRITTEN_SECONDS = 5.0
"""So long a condition that was written counts more than the pod that was read, which may be older."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GuardedPodPorts:
    """What is read and written."""

    facts: GuardFactsReader
    records: GuardRecords
    actions: GuardActions
    providers: GuardProviders
    policies: GuardPolicies
    shutdowns: NodeShutdowns
    clock: Clock


class GuardedPodController:
    """``run`` runs while this process leads."""

    def __init__(self, ports: GuardedPodPorts) -> None:
        self._ports = ports
        self._versions: dict[str, frozenset[str]] = {}
        """By namespace: its GuardPolicies, as its pods were last compared with them."""
        self._written: dict[str, tuple[float, StatusCondition | None]] = {}
        """What was written to pods, by uid, and when."""

    async def run(self) -> None:
        """Runs until cancelled."""
        ports = self._ports
        self._versions.clear()
        policies, shutdowns = await ports.policies.wait_for_change(-1), ports.shutdowns.changes
        await self._reconcile(everywhere=True)
        looked_at = ports.clock.boottime()
        while True:
            left = looked_at + LOOK_SECONDS - ports.clock.boottime()
            await wait_first(
                ports.policies.wait_for_change(policies),
                ports.shutdowns.wait_for_change(shutdowns),
                ports.clock.sleep(left),
            )
            now = ports.clock.boottime()
            everywhere = ports.shutdowns.changes != shutdowns or now >= looked_at + LOOK_SECONDS
            policies, shutdowns = ports.policies.changes, ports.shutdowns.changes
            looked_at = now if everywhere else looked_at
            await self._reconcile(everywhere=everywhere)

    async def _reconcile(self, *, everywhere: bool) -> None:
        """Looks at the namespaces whose GuardPolicies have changed, or at all; also once at those that have none now."""
        versions = _versions_by_namespace(self._ports.policies.by_key.values())
        before, self._versions = self._versions, versions
        for namespace in sorted({*before, *versions}):
            if not everywhere and before.get(namespace) == versions.get(namespace):
                continue
            try:
                await self._reconcile_namespace(namespace)
            except LastcallError as error:
                log.warning("namespace %s: its guarded pods are not up to date: %s", namespace, error)
                self._versions[namespace] = frozenset()

    async def _reconcile_namespace(self, namespace: str) -> None:
        deadlines = self._ports.shutdowns.deadlines
        is_shut_down = any(is_shutting_down(one, self._now()) for one in deadlines.values())
        read = self._ports.facts.read_namespace_facts if is_shut_down else self._ports.facts.read_pod_facts
        facts = await read(namespace)
        for policy in facts.policies:
            if condition := accepted_condition(policy, self._list_violations(policy), self._now()):
                await self._ports.records.write_policy_condition(policy, condition)
        for policy in facts.policies if is_shut_down else ():
            for entry in list_shutdown_requests(policy, facts, deadlines, self._now()):
                await self._request(policy, entry, facts)
        for change in list_condition_changes(facts, self._now(), written=self._recently_written()):
            await self._write_condition(change)

    def _recently_written(self) -> Mapping[str, StatusCondition | None]:
        oldest = self._ports.clock.boottime() - WRITTEN_SECONDS
        self._written = {uid: entry for uid, entry in self._written.items() if entry[0] > oldest}
        return {uid: condition for uid, (_, condition) in self._written.items()}

    def _list_violations(self, policy: GuardPolicy) -> Sequence[str]:
        violations = list(guard_violations(policy.spec))
        try:
            self._ports.providers.make_policy_provider(policy)
        except InvalidInput as error:
            violations += error.violations
        except LastcallError as error:
            violations.append(str(error))
        return violations

    async def _request(self, policy: GuardPolicy, entry: HeldPod, facts: GuardFacts) -> None:
        pod = next(one for one in facts.pods if one.metadata.uid == entry.uid)
        if entry.since == entry.last_request_at:
            log.info("pod %s: node %s shuts down", pod.key, pod.spec.node_name)

        def change(current: GuardPolicy, _: HeldPod | None) -> HeldPod | None:
            return request_by_shutdown(pod, current, facts, self._now())

        await self._ports.records.change_entry(policy, entry.uid, change)

    async def _write_condition(self, change: ConditionChange) -> None:
        try:
            await self._ports.actions.write_condition(change.pod, change.condition)
            self._written[change.pod.metadata.uid] = (self._ports.clock.boottime(), change.condition)
        except LastcallError as error:
            log.warning("pod %s: its condition cannot be written: %s", change.pod.key, error)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._ports.clock.wall(), UTC)


def _versions_by_namespace(policies: Iterable[GuardPolicy]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for one in policies:
        found.setdefault(one.metadata.namespace, set()).add(f"{one.metadata.uid}/{one.metadata.resource_version}")
    return {namespace: frozenset(versions) for namespace, versions in found.items()}
