"""Remarks on facts that decide nothing (pure): sentences for people who ask why nothing happens yet."""

from collections.abc import Iterable, Iterator

from lastcall.failover.evidence.facts import (
    Boot,
    Fact,
    InstanceSeen,
    NodeSeen,
    NodesWithoutOutageReport,
    PowerSeen,
    RebootOrdered,
    ShutdownAnnounced,
    StorageLease,
    WatchdogSeen,
)
from lastcall.failover.evidence.proofs import LIVES, power_of, rules_out_agreement
from lastcall.model.power import InstanceState
from lastcall.model.shutdown_kind import kind_remark

NO_WATCHDOG = "no armed watchdog is known of, so its silence proves nothing"


def list_remarks(boot: Boot, facts: Iterable[Fact]) -> Iterator[str]:
    """One remark for each fact that looks like a proof and is none, and the last answer of each source."""
    known = list(facts)
    own = [fact for fact in known if fact.boot_id == boot.id]
    yield from _last_answers(own)
    for fact in own:
        if remark := _remark_on(fact):
            yield remark
    bound = any(isinstance(fact, StorageLease) and fact.dead_after is not None for fact in own)
    if not bound and not any(isinstance(fact, WatchdogSeen) for fact in own):
        yield NO_WATCHDOG
    for fact in known:
        if isinstance(fact, NodeSeen) and fact.system_uuid != boot.system_uuid:
            yield f"machine {fact.system_uuid} has reported under its name: its own machine may run on"


def _last_answers(own: Iterable[Fact]) -> Iterator[str]:
    last: dict[str, PowerSeen | InstanceSeen] = {}
    for fact in own:
        if isinstance(fact, PowerSeen | InstanceSeen):
            before = last.get(fact.source)
            last[fact.source] = fact if before is None or fact.asked >= before.asked else before
    for source, fact in last.items():
        if isinstance(fact, InstanceSeen) and fact.state is InstanceState.NOT_FOUND:
            yield f"{source} does not find the instance, which proves nothing: region or account may be wrong"
        else:
            why = f": {fact.why}" if isinstance(fact, PowerSeen) and fact.why else ""
            yield f"{source} says {power_of(fact).value}{why}"


def _remark_on(fact: Fact) -> str:
    """The remark on one fact; empty if there is none."""
    match fact:
        case NodeSeen(ready=ready) if ready not in LIVES:
            return f"its condition Ready is {ready or 'missing'}"
        case RebootOrdered(by=by):
            return f"{by} ordered a reboot, which proves nothing"
        case ShutdownAnnounced(how=how, cancelled=False) if said := kind_remark(how):
            return f"it {said}"
        case StorageLease(source=source, dead_after=None):
            return f"no watchdog stands behind its lease on {source}"
        case WatchdogSeen(peers=NodesWithoutOutageReport(nodes=0)):
            return "its watchdog proves nothing: it is not known which nodes its agent counts"
        case WatchdogSeen(peers=NodesWithoutOutageReport() as peers) if not rules_out_agreement(fact):
            seen = f"only {peers.calm} of the {peers.nodes} nodes that it counts say that they told nobody so"
            return f"its watchdog proves nothing: {seen}, so that a majority without the API server may let it live on"
        case WatchdogSeen() if not rules_out_agreement(fact):
            seen = f"only {fact.reachable} of {fact.nodes} nodes surely had the API server"
            return f"its watchdog proves nothing: {seen}, so that a majority without it may have let the node live on"
        case _:
            return ""
