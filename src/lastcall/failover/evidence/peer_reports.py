"""What nodes say in their Leases of others that they still hear, as facts (pure).

A node that has lost the API server asks the agents of all others, and those that have the server tell of it
(``model.watchdog_heard``). Each says how long ago that was when it wrote. Nobody knows how long the write was on its way, so
the node counts as heard as long before *now* as it says: too late rather than too early.

That holds only for a write that was seen to come. What is there at the first look may be of any age, and so may what is read
once more, or arrives after something newer: none of it says anything. A write is known by its ``renewTime``, which differs
from the one before, and by a revision above all that were seen. After an etcd was restored from a backup, whose revisions are
lower, nothing is heard until they have risen above those.

Nodes say the same for as long as a minute, and each write takes a time of its own: so of one and the same question of a node
the earliest moment counts by which it had been heard.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lastcall.failover.evidence.facts import PeerHeard
from lastcall.failover.evidence.revisions import revision_number
from lastcall.model import watchdog_peer_reports
from lastcall.model.observed import WatchedLease

_BOOTS = 4


@dataclass(frozen=True)
class SeenLease:
    """A Lease as it was seen last: its revision and its ``renewTime``."""

    number: int
    renewed: str


def observe_write(before: SeenLease | None, lease: WatchedLease) -> tuple[SeenLease, bool]:
    """What is known after a look at it; whether a write was seen to come."""
    number, renewed = revision_number(lease.metadata.resource_version), lease.spec.renew_time
    if before is None:
        return SeenLease(number, renewed), False
    if number <= before.number:
        return before, False
    return SeenLease(number, renewed), renewed != before.renewed


def peer_facts(lease: WatchedLease, now: float) -> Iterator[tuple[str, PeerHeard]]:
    """Of which node, and what, by a write that was seen to come ``now``. That a node hears itself is no news."""
    peer = lease.metadata.name
    for node, heard in watchdog_peer_reports.parse_annotation(lease.metadata.annotations).items():
        if node != peer:
            yield node, PeerHeard(boot_id=heard.boot_id, peer=peer, question=heard.asked, at=now - heard.ago)


def adds_evidence(known: PeerHeard | None, fact: PeerHeard) -> bool:
    """Whether it says more of this boot: of a later question, or that the same one was heard earlier than was known."""
    if known is None or fact.question != known.question:
        return known is None or fact.question > known.question
    return fact.at < known.at


def retain_latest(facts: Mapping[str, PeerHeard], boot_id: str) -> dict[str, PeerHeard]:
    """Of all boots of a node that others speak of: the one that its Node shows, and those that were heard last."""
    latest = sorted(facts.values(), key=lambda one: (one.boot_id == boot_id, one.at))
    return {one.boot_id: one for one in latest[-_BOOTS:]}


class PeerReports:
    """Of all nodes' Leases, by what was seen of them last."""

    def __init__(self) -> None:
        self._pages: dict[str, SeenLease] = {}

    def observe_lease(self, lease: WatchedLease, now: float) -> list[tuple[str, PeerHeard]]:
        """What a Lease says anew, and of which node; it was read, or an event of it came, at ``now``."""
        name = lease.metadata.name
        self._pages[name], new = observe_write(self._pages.get(name), lease)
        return list(peer_facts(lease, now)) if new else []

    def forget_node(self, name: str) -> None:
        """Its Lease is gone: the next one is looked at for the first time."""
        self._pages.pop(name, None)
