"""Reports that other nodes still hear a node, for output (pure)."""

from collections.abc import Iterable

from lastcall.failover.evidence.facts import Boot, Fact, PeerHeard
from lastcall.model import duration
from lastcall.model.watchdog_peer_reports import WITHIN


def recent_peer_contact(boot: Boot | None, facts: Iterable[Fact], now: float) -> str:
    """``node n2 heard it 3s ago``; empty if no node heard this boot within a minute."""
    heard = [fact for fact in facts if isinstance(fact, PeerHeard) and boot is not None and fact.boot_id == boot.id]
    last = max(heard, key=lambda one: one.at, default=None)
    if last is None or now - last.at >= WITHIN:
        return ""
    return f"node {last.peer} heard it {duration.format_elapsed(now - last.at)} ago"
