"""Converts the peer reports in nodes' Leases to facts (pure).

A node that has lost the API server asks the agents of all others, and those that still reach the server report it
(``model.watchdog_peer_reports``). Each report says how long ago that was at the time of the write. The delay of the
write is unknown, so the node counts as heard that long before *now*: too late rather than too early.

That holds only for a write that was seen to arrive. The state at the first look may be of any age, and so may a
repeated read or a read that arrives after a newer one: none of them counts. A new write has another ``renewTime`` than
the one before, and a higher revision than all seen. After an etcd restore, revisions are lower, and reports are ignored
until the revisions exceed the earlier ones.

Nodes repeat a report for up to a minute, and each write has its own delay: so for one question of a node the earliest
time counts by which it was heard.
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
    """The last seen state of a Lease: its revision and its ``renewTime``."""

    number: int
    renewed: str


def observe_write(before: SeenLease | None, lease: WatchedLease) -> tuple[SeenLease, bool]:
    """The state after a look at it, and whether a new write was seen."""
    number, renewed = revision_number(lease.metadata.resource_version), lease.spec.renew_time
    if before is None:
        return SeenLease(number, renewed), False
    if number <= before.number:
        return before, False
    return SeenLease(number, renewed), renewed != before.renewed


def peer_facts(lease: WatchedLease, now: float) -> Iterator[tuple[str, PeerHeard]]:
    """The reported nodes with their facts, from a write that was seen at ``now``.

    A node's report of itself is ignored.
    """
    peer = lease.metadata.name
    for node, heard in watchdog_peer_reports.parse_annotation(lease.metadata.annotations).items():
        if node != peer:
            yield node, PeerHeard(boot_id=heard.boot_id, peer=peer, question=heard.asked, at=now - heard.ago)


def adds_evidence(known: PeerHeard | None, fact: PeerHeard) -> bool:
    """Whether the fact adds evidence: a later question, or an earlier time for the same one."""
    if known is None or fact.question != known.question:
        return known is None or fact.question > known.question
    return fact.at < known.at


def retain_latest(facts: Mapping[str, PeerHeard], boot_id: str) -> dict[str, PeerHeard]:
    """The facts to keep about a node's boots: its current boot, and those heard last."""
    latest = sorted(facts.values(), key=lambda one: (one.boot_id == boot_id, one.at))
    return {one.boot_id: one for one in latest[-_BOOTS:]}


class PeerReports:
    """The last seen state of all nodes' Leases."""

    def __init__(self) -> None:
        self._pages: dict[str, SeenLease] = {}

    def observe_lease(self, lease: WatchedLease, now: float) -> list[tuple[str, PeerHeard]]:
        """The new facts in a Lease that a read or a watch delivered at ``now``, each with the node that it is about."""
        name = lease.metadata.name
        self._pages[name], new = observe_write(self._pages.get(name), lease)
        return list(peer_facts(lease, now)) if new else []

    def forget_node(self, name: str) -> None:
        """Its Lease is gone; the next one counts as a first look."""
        self._pages.pop(name, None)
