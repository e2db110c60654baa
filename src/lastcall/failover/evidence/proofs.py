"""What each fact shows about a boot (pure): a sign of life at some moment, or a proof that it was over since then.

A boot that is over never comes back, so proofs do not expire. Only a later sign of life contradicts a proof.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from lastcall.failover.evidence.facts import (
    Boot,
    DeathAcknowledged,
    Fact,
    InstanceSeen,
    LeaseSeen,
    NodeSeen,
    PeerHeard,
    PowerSeen,
    ShutdownAnnounced,
    StorageLease,
    WatchdogSeen,
    seconds_apart,
)
from lastcall.model import duration
from lastcall.model.power import PowerState
from lastcall.model.system_uuid import is_unset

LIVES = ("True", "False")
"""Values of the Ready condition that a kubelet writes; the node controller writes Unknown."""


FRESH, LEAST_FRESH = 20.0, 5.0
"""Seconds: for the default 40 s duration of a kubelet's Lease, and the least for any (a busy server may be slow)."""


def fresh_seconds(lasts: int | None) -> float:
    """``ProofTerms.fresh`` for the duration of a kubelet's Lease (``leaseDurationSeconds``); None: unknown.

    The kubelet renews after a quarter of the duration (``NodeLeaseDurationSeconds`` and
    ``nodeLeaseRenewIntervalFraction`` of ``pkg/kubelet/kubelet.go``), so within half of it two renewals are due.
    """
    return FRESH if lasts is None else max(LEAST_FRESH, lasts / 2)


def suspect_seconds(suspect_after: float, fresh: float) -> float:
    """Seconds of silence before a node is suspected; never less than the time until a renewal is overdue.

    ``fresh`` as ``fresh_seconds`` returns it is twice the renewal interval; the least result is one and a half
    intervals.
    """
    return max(suspect_after, 0.75 * fresh)


@dataclass(frozen=True)
class ProofTerms:
    """Parameters of proofs, in seconds.

    A sign of life younger than ``fresh`` outweighs evidence that the machine is off.
    """

    fresh: float = FRESH
    """Twice the renewal interval of the kubelet's Lease: one renewal was certainly due (``fresh_seconds``)."""
    apart: float = 1.0
    """The least time between the two answers that count as one OFF: a device that is still switching may err once."""


@dataclass(frozen=True)
class LifeSign:
    """The boot was alive ``at``. ``machine``: only the power was on, which says nothing about its software."""

    at: float
    what: str
    machine: bool = False


class ProofKind(Enum):
    """The kind of evidence that a boot, or some pods of it, are over; the values appear in metrics."""

    FENCE = "FenceOff"
    INSTANCE = "InstanceOff"
    WATCHDOG = "WatchdogExpired"
    STORAGE = "StorageLeaseExpired"
    NEW_BOOT = "NewBoot"
    PERSON = "Person"
    """An acknowledgement, or a taint set by hand."""
    LAST_WORD = "LastWord"
    """The node's own announcement; it proves nothing about the boot, so no ``Proof`` has this kind."""


@dataclass(frozen=True)
class Proof:
    """The boot was over ``since``, if ``source`` is right."""

    since: float
    what: str
    kind: ProofKind
    source: str = ""
    """The device or cloud that reports it, or the other boot; else empty."""
    certain: bool = False
    """Another boot of the same machine reports: earlier signs of life, however fresh, do not outweigh it."""
    word: bool = False
    """A person's acknowledgement: any sign of life outweighs it."""


def life_signs(boot: Boot, facts: Iterable[Fact]) -> list[LifeSign]:
    """The signs of life of a boot, unordered; the first sight of its boot ID on the Node is one."""
    found = [_sign_of(fact) for fact in facts if fact.boot_id == boot.id]
    return [LifeSign(boot.since, "its Node reported this boot id"), *(one for one in found if one)]


def list_proofs(boot: Boot, facts: Sequence[Fact], terms: ProofTerms) -> list[Proof]:
    """The proofs of an end after the boot was first seen; earlier ones are about another boot."""
    own = [fact for fact in facts if fact.boot_id == boot.id]
    every = [
        *_new_boot_proofs(boot, facts),
        *_power_off_proofs(own, terms),
        *_expiry_proofs(own),
        *_acknowledgement_proofs(own),
    ]
    return [one for one in every if one.since > boot.since]


def distrusted_sources(
    boot: Boot, facts: Iterable[Fact], lived: Iterable[LifeSign], terms: ProofTerms
) -> dict[str, str]:
    """Sources that were wrong about this boot, each with the reason as the end of a sentence.

    A source that said OFF long before a sign of life was seen; a sign shortly after an OFF may only have been seen
    late. And a boot ID seen before this one, because boot IDs never come back: two machines take turns under one name.
    """
    known = list(facts)
    heard = max((one.at for one in lived if not one.machine), default=boot.since)
    own = [fact.at for fact in known if isinstance(fact, NodeSeen) and fact.boot_id == boot.id]
    shown = max(own, default=boot.since)
    wrong = {}
    for fact in known:
        if isinstance(fact, PowerSeen | InstanceSeen):
            early = boot.since < fact.asked <= heard - terms.fresh
            if fact.boot_id == boot.id and power_of(fact) is PowerState.OFF and early:
                wrong[fact.source] = f"{fact.source} was wrong before: it said OFF, and something was heard later"
        elif isinstance(fact, NodeSeen) and fact.boot_id != boot.id and fact.at <= max(boot.since, shown):
            wrong[_other_boot_source(fact)] = "the two have taken turns, as two machines of one name do"
    return wrong


def power_of(fact: PowerSeen | InstanceSeen) -> PowerState:
    """The power state that a device or a cloud reported."""
    return fact.power if isinstance(fact, PowerSeen) else fact.state.power


def rules_out_agreement(fact: WatchdogSeen) -> bool:
    """Whether the node cannot have petted its watchdog by agreement with peers.

    If its Lease allows agreement, half of the nodes must have reported that they took no part (``calm``). Otherwise, as
    a precaution, half of the nodes must have been in contact with the API server.
    """
    if fact.peers:
        return fact.peers.since is not None
    return 0 < fact.nodes <= 2 * fact.reachable


def _sign_of(fact: Fact) -> LifeSign | None:
    match fact:
        case NodeSeen(ready=ready, at=at) if ready in LIVES:
            return LifeSign(at, f"its kubelet reported Ready={ready}")
        case LeaseSeen(at=at):
            return LifeSign(at, "it renewed its Lease")
        case PeerHeard(peer=peer, at=at):
            return LifeSign(at, f"node {peer} heard it")
        case StorageLease(source=source, renewed=renewed, lived=lived):
            return LifeSign(renewed if lived is None else lived, f"it renewed its lease on {source}")
        case WatchdogSeen(renewed=renewed):
            return LifeSign(renewed, "its agent renewed its Lease")
        case ShutdownAnnounced(written=written, new=True):
            return LifeSign(written, "it wrote a NodeShutdown")
        case PowerSeen(asked=asked, source=source) | InstanceSeen(asked=asked, source=source):
            return LifeSign(asked, f"{source} said ON", machine=True) if power_of(fact) is PowerState.ON else None
        case _:
            return None


def _new_boot_proofs(boot: Boot, facts: Iterable[Fact]) -> Iterator[Proof]:
    """The kernel creates a new boot ID at each boot (random(4)), so another ID on the same machine ends this boot.

    A boot of another machine with the same name proves nothing about this one. Machines without a system UUID, or with
    a placeholder UUID, may be two.
    """
    for fact in facts:
        if not isinstance(fact, NodeSeen) or fact.boot_id in ("", boot.id):
            continue
        if fact.system_uuid == boot.system_uuid and not is_unset(boot.system_uuid):
            what = f"its machine has booted again, with boot id {fact.boot_id}"
            yield Proof(fact.at, what, ProofKind.NEW_BOOT, source=_other_boot_source(fact), certain=True)


def _other_boot_source(fact: NodeSeen) -> str:
    """The name of another boot as a source of proof."""
    return f"boot id {fact.boot_id}"


def _power_off_proofs(own: Iterable[Fact], terms: ProofTerms) -> Iterator[Proof]:
    """For each source the latest two OFF answers that are far enough apart; the boot was over at the earlier one."""
    answers: dict[str, list[PowerSeen | InstanceSeen]] = {}
    for fact in own:
        if isinstance(fact, PowerSeen | InstanceSeen) and power_of(fact) is PowerState.OFF:
            answers.setdefault(fact.source, []).append(fact)
    for source, said in answers.items():
        latest = max(said, key=lambda one: one.asked)
        if first := [one.asked for one in said if seconds_apart(one, latest) >= terms.apart]:
            kind = ProofKind.FENCE if isinstance(said[0], PowerSeen) else ProofKind.INSTANCE
            yield Proof(max(first), f"{source} said OFF twice", kind, source=source)


def _expiry_proofs(own: Iterable[Fact]) -> Iterator[Proof]:
    for fact in own:
        if (
            isinstance(fact, WatchdogSeen)
            and rules_out_agreement(fact)
            and fact.is_expired
            and fact.reset_at is not None
        ):
            what = f"its watchdog has reset it, as no renewal followed in {fact.settings.bound_arithmetic}"
            if fact.peers:
                what += f", and {fact.peers.calm} of {fact.peers.nodes} nodes never told it that they had lost the API server"
            yield Proof(fact.reset_at, what, ProofKind.WATCHDOG)
        if isinstance(fact, StorageLease) and fact.dead_after is not None:
            since = fact.renewed + fact.dead_after
            if fact.read >= since:
                late = duration.format_seconds(fact.dead_after)
                what = f"its lease on {fact.source} was not renewed for {late}: a watchdog has reset it"
                yield Proof(since, what, ProofKind.STORAGE)


def _acknowledgement_proofs(own: Iterable[Fact]) -> Iterator[Proof]:
    for fact in own:
        if isinstance(fact, DeathAcknowledged):
            yield Proof(fact.at, f"a person says so, by {fact.how}", ProofKind.PERSON, word=True)
