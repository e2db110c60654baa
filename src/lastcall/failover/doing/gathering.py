"""Gathers the Case of one node, live: the decision that follows is made from nothing else."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from msgspec import structs

from lastcall.errors import NotFound
from lastcall.failover.deciding import concluding, left
from lastcall.failover.deciding.case import Case, Refusal
from lastcall.failover.deciding.concluding import Terms
from lastcall.failover.deciding.pacing import NEVER, Forced
from lastcall.failover.doing.claims import Claims
from lastcall.failover.doing.devices import Devices
from lastcall.failover.doing.guard import Guard
from lastcall.failover.doing.observing import Observing
from lastcall.failover.doing.outside import Cluster, Leadership
from lastcall.failover.doing.reading import Reading
from lastcall.failover.doing.room import Room
from lastcall.failover.knowing import armed, calm, evidence, last_words, proofs
from lastcall.failover.knowing.facts import Boot, Fact, WatchdogSeen
from lastcall.failover.knowing.lost import Lost
from lastcall.failover.limits import overview
from lastcall.failover.limits.knot import Knot
from lastcall.failover.limits.storms import Answer
from lastcall.model.fence_node import FenceNode
from lastcall.model.fence_policy import FencePolicy
from lastcall.model.fencer import Fencer
from lastcall.model.observed import LiveNode, LivePod, WatchedAttachment
from lastcall.ports import Clock

AT_A_TIME = 4
"""Nodes that are read at a time: where hundreds are lost at once the first one is done before the last one is read."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """A Case, and what was read for it that carrying out a step needs."""

    case: Case
    node: LiveNode | None
    pods: dict[str, LivePod]
    """By uid; as the answers to what was asked for since have shown them."""
    attachments: Sequence[WatchedAttachment]
    facts: tuple[Fact, ...]
    listed: float = 0.0
    """When the pods were asked for."""
    removed: bool = False
    """Pods were removed since: that nothing is left is known by the answers to that alone, and by no list of the whole node."""


class Gathering:
    """For all nodes."""

    def __init__(
        self, cluster: Cluster, leadership: Leadership, observing: Observing, clock: Clock, terms: Terms
    ) -> None:
        self._cluster = cluster
        self._leadership = leadership
        self._observing = observing
        self._clock = clock
        self._terms = terms
        self._claims = Claims(cluster)
        self._room = Room(AT_A_TIME)
        self._etcd: frozenset[str] = frozenset()
        self.guard = Guard(cluster, observing)
        self.leads_since = float("-inf")
        """``Case.leads_since``, as the controller says."""

    async def gather(
        self,
        name: str,
        devices: Devices,
        refusals: Mapping[str, Refusal],
        *,
        reading: Reading,
        forced: Forced = NEVER,
        removed: tuple[Lost, ...] = (),
        before: Gathered | None = None,
        rank: int = 0,
    ) -> Gathered:
        """Reads the node and its Lease, or takes ``reading``, and its pods, or takes those from ``before``.

        Where many are to be read at once those with the lowest ``rank`` are read first. One that the watch does not know (any more) is missing.
        """
        try:
            async with self._room.place(rank):
                listed = before.listed if before else self._clock.boottime()
                node, pods, more = await self._read(name, reading, tuple(before.pods.values()) if before else None)
        except NotFound:
            return self._missing(name)
        knot = self._observing.knots.get(name)
        if knot is None:
            return self._missing(name)
        await self._prepare(devices, knot, node)
        attachments = tuple(self._observing.attachments(name))
        needed = self._terms.detach or left.volumes_stay(pods, node, self._clock.wall())
        claims = await self._claims.of(name, attachments) if needed else {}
        facts = tuple(concluding.facts(knot, node, more, self._observing.storage, self._observing.knots))
        bare = self._case(knot, node, facts)
        case = replace(
            bare,
            devices=devices.facts(lambda fencer: self.refusal(name, node, fencer)),
            pods=tuple(left.pod(pod, node, claims, refusals, bare.wall) for pod in pods),
            attachments=tuple(left.attachment(one, refusals) for one in attachments),
            forced=forced,
            removed=removed,
        )
        by_uid = {pod.metadata.uid: pod for pod in pods}
        return Gathered(
            case=case,
            node=node,
            pods=by_uid,
            attachments=attachments,
            facts=facts,
            listed=listed,
            removed=before is not None and before.removed,
        )

    # -- reading -------------------------------------------------------------------------------------------------------

    async def _read(
        self, name: str, reading: Reading, before: Sequence[LivePod] | None
    ) -> tuple[LiveNode, Sequence[LivePod], Sequence[Fact]]:
        """The Node, its pods, and what its agent says of its watchdog and of its going down."""
        knot = self._observing.knots.get(name)
        if knot is None:
            raise NotFound(f"no node {name} has been heard of")
        node, watchdog, said, listed = await asyncio.gather(
            self._node(knot, reading),
            self._watchdog(name, self._clock.boottime()),
            reading.shutdown(name, self._observing),
            self._cluster.pods(name) if before is None else _nothing(),
        )
        pods = (listed or ()) if before is None else before
        if not node.mark:
            self.guard.unclaimed(name)
        if any(one in node.metadata.labels for one in overview.CONTROL_PLANE):
            self._etcd = await self._cluster.etcd_nodes()
        word = self._observing.word(name)
        facts: list[Fact | None] = [watchdog, last_words.fact(word, said) if word else None]
        return node, pods, [fact for fact in facts if fact]

    @staticmethod
    async def _node(knot: Knot, reading: Reading) -> LiveNode:
        return reading.now(knot.seen) or await reading.anew(knot.seen)

    async def _prepare(self, devices: Devices, knot: Knot, node: LiveNode) -> None:
        policy, boot = knot.choice.policy, knot.seen.boot
        await devices.prepare(self._machine(node), policy, f"{boot.id} {knot.seen.observed}" if boot else "")
        knot.seen.rely(devices.bases)

    def _machine(self, node: LiveNode) -> FenceNode:
        """What fences are checked by, with the other Node that shows the same system UUID, if there is one."""
        mine = node.fence_node
        return structs.replace(mine, shared_with=self._observing.noted.sharing(mine.name, mine.system_uuid))

    def refusal(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """Why a fencer is not used for a node as it was read; asked anew right before an order (``Device.rival``)."""
        knot = self._observing.knots.get(name)
        if knot is None or knot.choice.policy is None:
            return ""
        return self._observing.refusal(node.fence_node, fencer, knot.choice.policy, self._clock.boottime())

    async def look_at_rivals(self, name: str, node: LiveNode, fencer: Fencer) -> str:
        """The same, after a live look at each other Node that the fencer may strike, and that is not heard of."""
        knot = self._observing.knots.get(name)
        if knot is None or knot.choice.policy is None:
            return ""
        for rival in self._observing.rivals(node.fence_node, fencer, knot.choice.policy):
            other = self._observing.knots.get(rival)
            if other is not None and other.silent(self._clock.boottime()):
                with suppress(NotFound):
                    await Reading(self._cluster, self._clock).anew(other.seen)
        return self.refusal(name, node, fencer)

    async def _watchdog(self, name: str, asked: float) -> WatchdogSeen | None:
        """What the node's own Lease says, read live, if the watch has shown that it has one."""
        if not self._observing.watchdog(name):
            return None
        lease = await self._cluster.watchdog(name)
        if lease is None:
            self._observing.storage.forget(name)
            return None
        watched = self._observing.look_at_watchdog(name, lease, self._clock.boottime())
        fact = self._seen(watched, asked)
        if fact and fact.peers and calm.due(fact, self._observing.calmness.surveyed_at, asked):
            leases = await self._cluster.watchdogs()
            self._observing.calmness.surveyed(calm.survey(asked, leases))
            fact = self._seen(watched, asked)
        return fact

    def _seen(self, watched: armed.Watched, read: float) -> WatchdogSeen | None:
        """By what its Lease has said since it was seen to say so, and by what those say whom its agent counts."""
        peers = watched.promise.peers if watched.promise else None
        others = self._observing.calmness.by(peers.nodes, self._clock.boottime()) if peers else ()
        return armed.watchdog_seen(watched, read=read, contacts=self._observing.contacts, calm=others)

    # -- concluding ----------------------------------------------------------------------------------------------------

    def _case(self, knot: Knot, node: LiveNode, facts: Sequence[Fact]) -> Case:
        """Without what is left on the node, and what may be done about it."""
        now, wall = self._clock.boottime(), self._clock.wall()
        policy, seen = knot.choice.policy, knot.seen
        boot = seen.boot
        return Case(
            name=seen.name,
            me=self._terms.me,
            leader=self._leadership.holder,
            wall=wall,
            node=concluding.node_now(node),
            policy=concluding.rules(policy, self._terms, seen.fresh) if policy else None,
            no_policy=knot.choice.why,
            observed=seen.observed,
            heard=seen.heard,
            leads_since=self.leads_since,
            boot=boot,
            verdict=evidence.assess(boot, facts, now, proofs.Terms(fresh=seen.fresh)) if boot else None,
            held_until=evidence.held_until(boot, facts, now) if boot else None,
            gone=evidence.gone(boot, facts) if boot else frozenset(),
            storm=lambda: self._storm(seen.name, boot, policy),
            back_since=seen.back[1] if seen.back else None,
        )

    def _storm(self, name: str, boot: Boot | None, policy: FencePolicy | None) -> Answer:
        """By what is known when it is asked: nothing may happen between the answer and the claim that follows from it."""
        if policy is None or boot is None:
            return Answer(allowed=False, why="no policy holds for it")
        now, wall = self._clock.boottime(), self._clock.wall()
        return self.guard.may_fence(name, boot.id, policy, etcd=self._etcd, now=now, wall=wall)

    def _missing(self, name: str) -> Gathered:
        case = Case(
            name=name,
            me=self._terms.me,
            leader=self._leadership.holder,
            wall=self._clock.wall(),
            node=None,
            policy=None,
            observed=self._clock.boottime(),
        )
        return Gathered(case=case, node=None, pods={}, attachments=(), facts=())


async def _nothing() -> None:
    """What is not asked for."""
