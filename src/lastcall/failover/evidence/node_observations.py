"""What has been seen of one node, as facts for each of its boots (pure); as little as that takes.

A sign of life counts from when it was seen, on the observer's clock. What was written is compared with what was written
before: only what differs is new.

An etcd that is restored from a backup takes everything back to an earlier state: revisions are lower than what was seen, and
a Node may show a boot that is long over while its machine writes. Nothing that was seen before holds then: who notices it
observes from that moment on, as if he had just begun, so that neither silence nor a proof reaches further back.
"""

from collections.abc import Mapping

from lastcall import names
from lastcall.failover.evidence import peer_reports
from lastcall.failover.evidence.facts import Boot, Fact, InstanceSeen, LeaseSeen, NodeSeen, PeerHeard, PowerSeen
from lastcall.failover.evidence.proofs import FRESH, LIVES, fresh_seconds
from lastcall.failover.evidence.revisions import revision_number
from lastcall.model.observed import LiveNode, WatchedLease, WatchedNode

_BOOTS = 4
"""So many boots of a node are remembered: one that is fenced, and those that may take turns under its name."""

_ANSWERS = 16
"""So many answers of each source: the first ones, which may show that it was wrong, and the last ones."""


class NodeObservations:
    """Of one node, which is ``observed`` since then."""

    __slots__ = (
        *("_anew", "_bases", "_boots", "_more", "_peers", "_reported", "_revisions", "_seen"),
        *("back", "boot", "fresh", "heard", "name", "observed", "renewed", "tainted", "word"),
    )

    def __init__(self, name: str, observed: float) -> None:
        self.name = name
        self._bases: Mapping[str, object] = {}
        self._reset(observed, anew=False)

    def _reset(self, observed: float, *, anew: bool) -> None:
        """Nothing is known yet. ``anew``: history went back, so the Lease that is seen next says nothing of now."""
        self._anew = anew
        self.observed = observed
        self.boot: Boot | None = None
        """The boot that the Node shows now; None if it has never shown any."""
        self.heard: float | None = None
        """The last sign of life of its kubelet that was seen to come; what was there at the first look is none."""
        self.back: tuple[str, float] | None = None
        """Since when it is seen Ready without a break, and with which boot id; None if it is not."""
        self.fresh = FRESH
        """``proofs.Terms.fresh`` by the Lease as it was read last."""
        self.tainted: float | None = None
        """Since when it is seen to have the taint out-of-service without a break; None if it has not."""
        self.renewed: tuple[str, float] | None = None
        """``renewTime`` of its Lease, and when that was first seen; None if there was never any."""
        self.word: tuple[str, float] | None = None
        """A person's word that its machine is dead, and since when it is seen without a break; None if there is none."""
        self._boots: dict[str, Boot] = {}
        self._seen: dict[str, NodeSeen | LeaseSeen] = {}
        self._reported: tuple[str, ...] = ()
        self._revisions = [0, 0]
        self._more: list[Fact] | None = None
        self._peers: dict[str, PeerHeard] | None = None

    @property
    def quiet_since(self) -> float:
        """Since when nothing was heard of it, as far as the observer can know."""
        return self.observed if self.heard is None else max(self.observed, self.heard)

    @property
    def known_revisions(self) -> tuple[int, int]:
        """Of the Node and of its Lease, as they are known: for ``since`` of what is asked for now."""
        return self._revisions[0], self._revisions[1]

    def has_newer_than(self, node: LiveNode) -> bool:
        """Whether something newer than this reading of the Node has been seen, so that it may say what is not so any more."""
        return revision_number(node.metadata.resource_version) < self._revisions[0]

    def restart_observation(self, now: float) -> None:
        """Its Lease is followed from now on: that little was heard before says nothing of it."""
        self.observed = now

    def note_deletion(self, now: float) -> None:
        """The Node is deleted: who has decided something about it begins anew, if it comes back."""
        self.observed = now

    def observe_node(self, node: WatchedNode | LiveNode, now: float, *, since: int | None = None) -> bool:
        """The Node as it was read at ``now``; whether its kubelet has reported since it was seen last.

        What is older than what was seen before says nothing: a watch and a live read overtake each other. But a live read
        never gives what is older than what was known when it was asked for (``since``), unless history has gone back.
        """
        number = revision_number(node.metadata.resource_version)
        if self._history_went_back(0, number, since):
            self._reset(now, anew=True)
        if self._is_older(0, number):
            return False
        info, ready = node.status.node_info, node.ready_condition
        first = not self._reported
        if info.boot_id and (self.boot is None or info.boot_id != self.boot.id):
            self._change_boot(info.boot_id, info.system_uuid, now)
        tainted = any(taint.key == names.OUT_OF_SERVICE for taint in node.spec.taints)
        self.tainted = (self.tainted or now) if tainted else None
        self._note_acknowledgement(node.acknowledgement_text, now)
        self._note_return(info.boot_id, now, ready=ready.status == "True")
        reported = (info.boot_id, info.system_uuid, ready.status, ready.last_heartbeat_time)
        if reported == self._reported or not info.boot_id:
            return False
        self._reported = reported
        self._note_sign(NodeSeen(boot_id=info.boot_id, system_uuid=info.system_uuid, ready=ready.status, at=now))
        if ready.status not in LIVES or first:
            return False
        self.heard = now
        return True

    def observe_lease(self, lease: WatchedLease, now: float, *, first: bool = False, since: int | None = None) -> bool:
        """Its Lease as it was read at ``now``; whether it was renewed since it was seen last.

        ``first``: this is the observer's first look at all Leases, so that nobody knows how old it is. ``since`` as for the
        Node. A renewal that is later by its writer's own clock, though its revision is lower, tells the same.
        """
        number, renewed = revision_number(lease.metadata.resource_version), lease.spec.renew_time
        later = self.renewed is not None and renewed > self.renewed[0] and number < self._revisions[1]
        if later or self._history_went_back(1, number, since):
            self._reset(now, anew=True)
        if self._is_older(1, number):
            return False
        first, self._anew = first or self._anew, False
        self.fresh = fresh_seconds(lease.spec.lease_duration_seconds)
        if not renewed or (self.renewed and renewed == self.renewed[0]):
            return False
        self.renewed = (renewed, now)
        if first:
            return False
        self.heard = now
        if self.boot:
            self._note_sign(LeaseSeen(boot_id=self.boot.id, at=now))
        return True

    def observe_peer_report(self, fact: PeerHeard) -> bool:
        """Another node has heard it; whether that was not known yet.

        It stays silent all the same: what it asks of others says nothing to the API server.
        """
        known = (self._peers or {}).get(fact.boot_id)
        if not peer_reports.adds_evidence(known, fact):
            return False
        self._peers = peer_reports.retain_latest(
            {**(self._peers or {}), fact.boot_id: fact}, self.boot.id if self.boot else ""
        )
        return known is None or fact.question != known.question

    def add_fact(self, fact: Fact) -> None:
        """Something else that was learned."""
        self._more = [*(self._more or ()), fact]
        if isinstance(fact, PowerSeen | InstanceSeen):
            own = [one for one in self._more if isinstance(one, type(fact)) and one.source == fact.source]
            if len(own) > _ANSWERS:
                self._more.remove(own[_ANSWERS // 2])

    def update_fencer_bases(self, bases: Mapping[str, object]) -> None:
        """What the fencers' answers rest on by now: those of one that may be about another machine since are dropped."""
        kept = {source for source, basis in self._bases.items() if bases.get(source) == basis}
        self._bases = bases
        if self._more:
            self._more = [
                one for one in self._more if not isinstance(one, PowerSeen | InstanceSeen) or one.source in kept
            ]

    def forget_facts(self) -> None:
        """The node is in order: what led here is of no use any more."""
        self._more = self._peers = None
        self._boots = {self.boot.id: self.boot} if self.boot else {}
        own = self.boot.id if self.boot else ""
        self._seen = {key: fact for key, fact in self._seen.items() if fact.boot_id == own}

    def all_facts(self) -> list[Fact]:
        """About all its boots that are remembered."""
        return [*self._seen.values(), *(self._peers or {}).values(), *(self._more or ())]

    def _change_boot(self, boot_id: str, system_uuid: str, now: float) -> None:
        """A boot that comes back is remembered as it was seen first: the two take turns."""
        self.boot = self._boots.setdefault(boot_id, Boot(id=boot_id, system_uuid=system_uuid, since=now))
        if len(self._boots) > _BOOTS:
            oldest = next(one for one in self._boots if one != boot_id)
            del self._boots[oldest]
            self._seen = {key: fact for key, fact in self._seen.items() if fact.boot_id != oldest}

    def _history_went_back(self, which: int, number: int, since: int | None) -> bool:
        return since is not None and number < min(since, self._revisions[which])

    def _is_older(self, which: int, number: int) -> bool:
        if number < self._revisions[which]:
            return True
        self._revisions[which] = number
        return False

    def _note_return(self, boot_id: str, now: float, *, ready: bool) -> None:
        if not ready:
            self.back = None
        elif self.back is None or self.back[0] != boot_id:
            self.back = (boot_id, now)

    def _note_acknowledgement(self, text: str, now: float) -> None:
        if not text:
            self.word = None
        elif self.word is None or self.word[0] != text:
            self.word = (text, now)

    def _note_sign(self, fact: NodeSeen | LeaseSeen) -> None:
        """The last of each kind and boot, but what a kubelet wrote is not replaced by what others wrote in its place."""
        ready = fact.ready if isinstance(fact, NodeSeen) else ""
        kind = "lease" if isinstance(fact, LeaseSeen) else "lives" if ready in LIVES else "silent"
        self._seen[f"{kind} {fact.boot_id}"] = fact
