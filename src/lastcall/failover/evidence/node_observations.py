"""The observations of one node, kept as facts for each of its boots (pure), with bounded memory.

A sign of life counts from when it was seen, on the observer's clock. New state is compared with earlier state: only a
difference counts.

An etcd that is restored from a backup returns to an earlier state: revisions are lower than before, and a Node may show
a boot that is long over while its machine still writes. All earlier observations are then invalid: observation starts
over at that moment, so that neither silence nor a proof reaches further back.
"""

from collections.abc import Mapping

from lastcall import names
from lastcall.failover.evidence import peer_reports
from lastcall.failover.evidence.facts import Boot, Fact, InstanceSeen, LeaseSeen, NodeSeen, PeerHeard, PowerSeen
from lastcall.failover.evidence.proofs import FRESH, LIVES, fresh_seconds
from lastcall.failover.evidence.revisions import revision_number
from lastcall.model.observed import LiveNode, ObservedNode, WatchedLease

_BOOTS = 4
"""The number of boots that are remembered per node: a fenced one, and those of machines that may share its name."""

_ANSWERS = 16
"""The number of answers kept per source: the first ones, which may show that it was wrong, and the last ones."""


class NodeObservations:
    """The observations of one node since ``observed``."""

    __slots__ = (
        *("_anew", "_bases", "_boots", "_more", "_peers", "_reported", "_revisions", "_seen"),
        *("back", "boot", "fresh", "heard", "name", "observed", "renewed", "tainted", "word"),
    )

    def __init__(self, name: str, observed: float) -> None:
        self.name = name
        self._bases: Mapping[str, object] = {}
        self._reset(observed, anew=False)

    def _reset(self, observed: float, *, anew: bool) -> None:
        """Starts over. ``anew``: history went back, so the next Lease seen is no sign of life."""
        self._anew = anew
        self.observed = observed
        self.boot: Boot | None = None
        """The Node's current boot; None if it never reported one."""
        self.heard: float | None = None
        """The last sign of life of its kubelet that was seen to arrive; state found at the first look is none."""
        self.back: tuple[str, float] | None = None
        """The boot ID with which it is seen Ready, and since when without interruption; None if it is not Ready."""
        self.fresh = FRESH
        """``proofs.ProofTerms.fresh`` for its Lease as last read."""
        self.tainted: float | None = None
        """Since when it is seen with an out-of-service taint without interruption; None without one."""
        self.renewed: tuple[str, float] | None = None
        """``renewTime`` of its Lease, and when that was first seen; None without a Lease."""
        self.word: tuple[str, float] | None = None
        """The acknowledgement annotation, and since when it is seen without interruption; None without one."""
        self._boots: dict[str, Boot] = {}
        self._seen: dict[str, NodeSeen | LeaseSeen] = {}
        self._reported: tuple[str, ...] = ()
        self._revisions = [0, 0]
        self._more: list[Fact] | None = None
        self._peers: dict[str, PeerHeard] | None = None

    @property
    def quiet_since(self) -> float:
        """The time since which the observer has seen no sign of life."""
        return self.observed if self.heard is None else max(self.observed, self.heard)

    @property
    def known_revisions(self) -> tuple[int, int]:
        """The latest revisions of the Node and its Lease; pass them as ``since`` of a read that starts now."""
        return self._revisions[0], self._revisions[1]

    def has_newer_than(self, node: LiveNode) -> bool:
        """Whether a newer state of the Node than this read has been seen, so that this one may be outdated."""
        return revision_number(node.metadata.resource_version) < self._revisions[0]

    def restart_observation(self, now: float) -> None:
        """Its Lease is watched from now on; the silence before is no evidence."""
        self.observed = now

    def note_deletion(self, now: float) -> None:
        """The Node is deleted; if it comes back, all decisions about it start over."""
        self.observed = now

    def observe_node(self, node: ObservedNode, now: float, *, since: int | None = None) -> bool:
        """Records the Node as read at ``now``; returns whether its kubelet reported since the last observation.

        An older state than the last one is ignored, because watch and live reads overtake each other. But a live read
        never returns older state than was known when it began (``since``), unless history went back.
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
        """Records its Lease as read at ``now``; returns whether it was renewed since the last observation.

        ``first``: the observer's first list of Leases, whose age is unknown. ``since`` as for the Node. A later renewal
        by the writer's own clock with a lower revision also shows that history went back.
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
        """Records that another node heard it; returns whether that is new.

        The node stays silent: a question to its peers does not reach the API server.
        """
        known = (self._peers or {}).get(fact.boot_id)
        if not peer_reports.adds_evidence(known, fact):
            return False
        self._peers = peer_reports.retain_latest(
            {**(self._peers or {}), fact.boot_id: fact}, self.boot.id if self.boot else ""
        )
        return known is None or fact.question != known.question

    def add_fact(self, fact: Fact) -> None:
        """Adds another fact, such as a fencer's answer."""
        self._more = [*(self._more or ()), fact]
        if isinstance(fact, PowerSeen | InstanceSeen):
            own = [one for one in self._more if isinstance(one, type(fact)) and one.source == fact.source]
            if len(own) > _ANSWERS:
                self._more.remove(own[_ANSWERS // 2])

    def update_fencer_bases(self, bases: Mapping[str, object]) -> None:
        """Sets the identity on which each fencer's answers rest, and drops those of fencers whose identity changed."""
        kept = {source for source, basis in self._bases.items() if bases.get(source) == basis}
        self._bases = bases
        if self._more:
            self._more = [
                one for one in self._more if not isinstance(one, PowerSeen | InstanceSeen) or one.source in kept
            ]

    def forget_facts(self) -> None:
        """The node is healthy: drops the facts of the past incident."""
        self._more = self._peers = None
        self._boots = {self.boot.id: self.boot} if self.boot else {}
        own = self.boot.id if self.boot else ""
        self._seen = {key: fact for key, fact in self._seen.items() if fact.boot_id == own}

    def all_facts(self) -> list[Fact]:
        """The facts about all remembered boots."""
        return [*self._seen.values(), *(self._peers or {}).values(), *(self._more or ())]

    def _change_boot(self, boot_id: str, system_uuid: str, now: float) -> None:
        """A boot that reappears keeps its first observation: two machines take turns."""
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
        """Keeps the last sign of each kind and boot; a status of other writers does not replace the kubelet's."""
        ready = fact.ready if isinstance(fact, NodeSeen) else ""
        kind = "lease" if isinstance(fact, LeaseSeen) else "lives" if ready in LIVES else "silent"
        self._seen[f"{kind} {fact.boot_id}"] = fact
