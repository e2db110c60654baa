"""Builds the Case of one node from live reads; the decision uses nothing else."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace

from msgspec import structs

from lastcall.errors import NotFound
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.controller.controller_ports import FailoverApi, Leadership
from lastcall.failover.controller.node_fencers import NodeFencers
from lastcall.failover.controller.node_reading import NodeReading
from lastcall.failover.controller.persistent_claims import AttachedClaims
from lastcall.failover.controller.ranked_semaphore import RankedSemaphore
from lastcall.failover.controller.storm_guard import StormGuard
from lastcall.failover.decisions import case_facts, case_pods
from lastcall.failover.decisions.case import ApiRefusal, Case
from lastcall.failover.decisions.case_facts import ControllerTerms
from lastcall.failover.decisions.removal_backoff import NEVER, ForcedRemovals
from lastcall.failover.evidence import assessment, node_shutdown_facts, outage_reports, proofs, watchdog_observation
from lastcall.failover.evidence.facts import Boot, Fact, WatchdogSeen
from lastcall.failover.evidence.lost_pods import LostPod
from lastcall.failover.limits import storm_view
from lastcall.failover.limits.storms import LimitAnswer
from lastcall.failover.limits.tracked_node import TrackedNode
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Fencer
from lastcall.model.observed import FailoverPod, LiveNode, WatchedAttachment
from lastcall.ports.node import Clock

AT_A_TIME = 4
"""The number of nodes that are read concurrently: with hundreds lost at once, the first failover does not wait for the
last read.
"""


@dataclass(frozen=True, kw_only=True)
class GatheredCase:
    """A Case together with the objects that the execution of its step needs."""

    case: Case
    node: LiveNode | None
    pods: dict[str, FailoverPod]
    """By UID; updated from the answers to later calls."""
    attachments: Sequence[WatchedAttachment]
    facts: tuple[Fact, ...]
    listed: float = 0.0
    """When the list of pods was requested."""
    removed: bool = False
    """Pods were removed since: that none remains is known only from those answers, not from a list of the node."""


class CaseBuilder:
    """Builds the Cases of all nodes."""

    def __init__(
        self, cluster: FailoverApi, leadership: Leadership, observing: ClusterView, clock: Clock, terms: ControllerTerms
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._observing = observing
        self._clock = clock
        self._terms = terms
        self._claims = AttachedClaims(cluster)
        self._room = RankedSemaphore(AT_A_TIME)
        self._etcd: frozenset[str] = frozenset()
        self.guard = StormGuard(cluster, observing)
        self.leads_since = float("-inf")
        """``Case.leads_since``, set by the controller."""

    async def build(
        self,
        name: str,
        devices: NodeFencers,
        refusals: Mapping[str, ApiRefusal],
        *,
        reading: NodeReading,
        forced: ForcedRemovals = NEVER,
        removed: tuple[LostPod, ...] = (),
        before: GatheredCase | None = None,
        rank: int = 0,
    ) -> GatheredCase:
        """Reads the node and its Lease, or reuses ``reading``; lists its pods, or reuses those of ``before``.

        If many nodes are to be read at once, the lowest ``rank`` is read first. A node of which nothing is to be read does
        not wait for them. A node that the watch does not know (any more) counts as missing.
        """
        is_read = before is not None and reading.is_recent(self._clock.boottime())
        try:
            async with nullcontext() if is_read else self._room.acquire_slot(rank):
                listed = before.listed if before else self._clock.boottime()
                node, pods, more = await self._read_node_state(
                    name, reading, tuple(before.pods.values()) if before else None
                )
        except NotFound:
            return self._missing_case(name)
        knot = self._observing.tracked_nodes.get(name)
        if knot is None:
            return self._missing_case(name)
        await self._prepare_fencers(devices, knot, node)
        attachments = tuple(self._observing.attachments_of(name))
        needed = self._terms.detach or case_pods.has_staying_volumes(pods, node, self._clock.wall())
        claims = await self._claims.claims_on_node(name, attachments) if needed else {}
        facts = tuple(
            case_facts.collect_facts(knot, node, more, self._observing.storage, self._observing.tracked_nodes)
        )
        bare = self._base_case(knot, node, facts)
        case = replace(
            bare,
            devices=devices.fencer_states(lambda fencer: self.fencer_refusal(name, node, fencer)),
            pods=tuple(case_pods.case_pod(pod, node, claims, refusals, bare.wall) for pod in pods),
            attachments=tuple(case_pods.case_attachment(one, refusals) for one in attachments),
            forced=forced,
            removed=removed,
        )
        by_uid = {pod.metadata.uid: pod for pod in pods}
        return GatheredCase(
            case=case,
            node=node,
            pods=by_uid,
            attachments=attachments,
            facts=facts,
            listed=listed,
            removed=before is not None and before.removed,
        )

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _read_node_state(
        self, name: str, reading: NodeReading, before: Sequence[FailoverPod] | None
    ) -> tuple[LiveNode, Sequence[FailoverPod], Sequence[Fact]]:
        """Reads the Node, its pods, and its agent's watchdog Lease and shutdown announcement."""
        knot = self._observing.tracked_nodes.get(name)
        if knot is None:
            raise NotFound(f"no node {name} has been heard of")
        node, watchdog, said, listed = await asyncio.gather(
            self._read_node(knot, reading),
            self._watchdog_evidence(name, self._clock.boottime()),
            reading.read_shutdown(name, self._observing),
            self._cluster.list_pods(name) if before is None else _return_nothing(),
        )
        pods = (listed or ()) if before is None else before
        if not node.mark_text:
            self.guard.drop_claim(name)
        if any(one in node.metadata.labels for one in storm_view.CONTROL_PLANE):
            self._etcd = await self._cluster.list_etcd_nodes()
        word = self._observing.shutdown_of(name)
        facts: list[Fact | None] = [watchdog, node_shutdown_facts.shutdown_fact(word, said) if word else None]
        return node, pods, [fact for fact in facts if fact]

    @staticmethod
    async def _read_node(knot: TrackedNode, reading: NodeReading) -> LiveNode:
        return reading.reusable_node(knot.seen) or await reading.read_live(knot.seen)

    async def _prepare_fencers(self, devices: NodeFencers, knot: TrackedNode, node: LiveNode) -> None:
        policy, boot = knot.choice.policy, knot.seen.boot
        await devices.prepare_fences(self._fence_node(node), policy, f"{boot.id} {knot.seen.observed}" if boot else "")
        knot.seen.update_fencer_bases(devices.answer_bases)

    def _fence_node(self, node: LiveNode) -> FenceNode:
        """The identity for fence checks, with the other Node that shows the same system UUID, if one exists."""
        mine = node.fence_node
        return structs.replace(
            mine, shared_with=self._observing.node_indexes.node_sharing_uuid(mine.name, mine.system_uuid)
        )

    def fencer_refusal(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """Why a fencer is not used for a node as read; checked again right before an order (``FencerState.rival``)."""
        knot = self._observing.tracked_nodes.get(name)
        if knot is None or knot.choice.policy is None:
            return ""
        return self._observing.fencer_refusal(node.fence_node, fencer, knot.choice.policy, self._clock.boottime())

    async def verify_rivals_live(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """The same, after a live read of each silent rival Node that the fencer may hit."""
        knot = self._observing.tracked_nodes.get(name)
        if knot is None or knot.choice.policy is None:
            return ""
        for rival in self._observing.find_rivals(node.fence_node, fencer, knot.choice.policy):
            other = self._observing.tracked_nodes.get(rival)
            if other is not None and other.is_silent(self._clock.boottime()):
                with suppress(NotFound):
                    await NodeReading(self._cluster, self._clock).read_live(other.seen)
        return self.fencer_refusal(name, node, fencer)

    async def _watchdog_evidence(self, name: str, asked: float) -> WatchdogSeen | None:
        """The evidence from the node's watchdog Lease, read live if the watch has shown one."""
        if not self._observing.watchdog_of(name):
            return None
        lease = await self._cluster.read_watchdog_lease(name)
        if lease is None:
            self._observing.storage.forget_node(name)
            return None
        watched = self._observing.observe_watchdog(name, lease, self._clock.boottime())
        fact = self._assess_watchdog(watched, asked)
        if fact and fact.peers and outage_reports.is_survey_due(fact, self._observing.calmness.last_survey_at, asked):
            leases = await self._cluster.list_watchdog_leases()
            self._observing.calmness.add_survey(outage_reports.survey_leases(asked, leases))
            fact = self._assess_watchdog(watched, asked)
        return fact

    def _assess_watchdog(self, watched: watchdog_observation.WatchdogObservation, read: float) -> WatchdogSeen | None:
        """Combines the Lease's state since it was first seen with the reports of the peers that its agent counts."""
        peers = watched.promise.peers if watched.promise else None
        others = self._observing.calmness.silent_counts(peers.nodes, self._clock.boottime()) if peers else ()
        return watchdog_observation.watchdog_evidence(
            watched, read=read, contacts=self._observing.contacts, calm=others
        )

    # -- concluding ----------------------------------------------------------------------------------------------------

    def _base_case(self, knot: TrackedNode, node: LiveNode, facts: Sequence[Fact]) -> Case:
        """The Case without the pods and volumes on the node, and without its fencers."""
        now, wall = self._clock.boottime(), self._clock.wall()
        policy, seen = knot.choice.policy, knot.seen
        boot = seen.boot
        return Case(
            name=seen.name,
            me=self._terms.me,
            leader=self._leadership.holder,
            wall=wall,
            node=case_facts.node_snapshot(node),
            policy=case_facts.effective_policy(policy, self._terms, seen.fresh) if policy else None,
            no_policy=knot.choice.why,
            observed=seen.observed,
            heard=seen.heard,
            leads_since=self.leads_since,
            boot=boot,
            verdict=assessment.assess(boot, facts, now, proofs.ProofTerms(fresh=seen.fresh)) if boot else None,
            held_until=assessment.fencing_held_until(boot, facts, now) if boot else None,
            gone=assessment.ended_pod_uids(boot, facts) if boot else frozenset(),
            storm=lambda: self._limit_answer(seen.name, boot, policy),
            back_since=seen.back[1] if seen.back else None,
        )

    def _limit_answer(self, name: str, boot: Boot | None, policy: FencePolicy | None) -> LimitAnswer:
        """Evaluates the limits on current state: no await may come between the answer and the claim that follows."""
        if policy is None or boot is None:
            return LimitAnswer(allowed=False, why="no FencePolicy applies to it")
        now, wall = self._clock.boottime(), self._clock.wall()
        return self.guard.may_fence(name, boot.id, policy, etcd=self._etcd, now=now, wall=wall)

    def _missing_case(self, name: str) -> GatheredCase:
        case = Case(
            name=name,
            me=self._terms.me,
            leader=self._leadership.holder,
            wall=self._clock.wall(),
            node=None,
            policy=None,
            observed=self._clock.boottime(),
        )
        return GatheredCase(case=case, node=None, pods={}, attachments=(), facts=())


async def _return_nothing() -> None:
    """Replaces a read that is not needed."""
