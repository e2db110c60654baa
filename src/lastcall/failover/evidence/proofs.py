"""What each fact shows of one boot (pure): that it was alive at some moment, or that it was over since some moment.

A boot that is over never comes back: a proof has no age at which it lapses. Only a sign of life that is later than a proof
speaks against it.
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
"""Values of the condition Ready that a kubelet writes; Unknown comes from who has missed it."""


FRESH, LEAST_FRESH = 20.0, 5.0
"""Seconds: for the 40 s that a kubelet's Lease lasts by default, and however short it is: a busy API server may take so
long for a renewal."""


def fresh_seconds(lasts: int | None) -> float:
    """``ProofTerms.fresh`` of a kubelet by the seconds that its Lease lasts (``leaseDurationSeconds``); None: nobody knows.

    It renews it when a quarter of them is over (``NodeLeaseDurationSeconds`` and ``nodeLeaseRenewIntervalFraction`` of
    ``pkg/kubelet/kubelet.go``), so that in half of them two renewals are due.
    """
    return FRESH if lasts is None else max(LEAST_FRESH, lasts / 2)


def suspect_seconds(suspect_after: float, fresh: float) -> float:
    """Seconds of silence after which a node is suspected: never before a renewal is overdue, however soon a policy would.

    ``fresh`` as ``fresh_seconds`` gives it: twice what lies between two renewals, of which this is one and a half.
    """
    return max(suspect_after, 0.75 * fresh)


@dataclass(frozen=True)
class ProofTerms:
    """Seconds. A sign of life younger than ``fresh`` outweighs what says that the machine is off."""

    fresh: float = FRESH
    """Twice the time between two renewals of the kubelet's Lease: one was certainly due (``fresh_seconds``)."""
    apart: float = 1.0
    """At least so far apart are the two answers that count as one OFF: a device that is still switching may err once."""


@dataclass(frozen=True)
class LifeSign:
    """The boot was alive ``at``. ``machine``: its power was on, which says nothing of what runs on it."""

    at: float
    what: str
    machine: bool = False


class ProofKind(Enum):
    """What has shown that a boot is over, or, by its last word, some pods of it; the values are for metrics."""

    FENCE = "FenceOff"
    INSTANCE = "InstanceOff"
    WATCHDOG = "WatchdogExpired"
    STORAGE = "StorageLeaseExpired"
    NEW_BOOT = "NewBoot"
    PERSON = "Person"
    """By an acknowledgement, or by a taint that is set by hand."""
    LAST_WORD = "LastWord"
    """It proves nothing of the boot, and so is no ``Proof``'s."""


@dataclass(frozen=True)
class Proof:
    """The boot was over ``since``, if ``source`` tells the truth."""

    since: float
    what: str
    kind: ProofKind
    source: str = ""
    """The device or cloud that says so, or the other boot; else empty."""
    certain: bool = False
    """Another boot of the same machine reports: a sign of life need not be old before that counts."""
    word: bool = False
    """A person's: everything else that says ALIVE outweighs it."""


def life_signs(boot: Boot, facts: Iterable[Fact]) -> list[LifeSign]:
    """That the boot has lived, in no order. That its Node was first seen with its id is one of them."""
    found = [_sign_of(fact) for fact in facts if fact.boot_id == boot.id]
    return [LifeSign(boot.since, "its Node reported this boot id"), *(one for one in found if one)]


def list_proofs(boot: Boot, facts: Sequence[Fact], terms: ProofTerms) -> list[Proof]:
    """Those that speak of a time after the boot was first seen; what is older means another one."""
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
    """Sources that have been wrong about this boot, each with the end of a sentence that says why.

    Who has said OFF, long before something was heard of it: a sign that comes a little after an OFF may only have been seen
    late. And a boot id that was seen before this one, for none comes back: two machines take turns under one name.
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
    """What a device or a cloud has said."""
    return fact.power if isinstance(fact, PowerSeen) else fact.state.power


def rules_out_agreement(fact: WatchdogSeen) -> bool:
    """Whether the node cannot have petted its watchdog by agreement with others.

    Where its Lease says that it may, half of the nodes have to have said that they took no part (``calm``). Else it does
    not, and it is a precaution that half of the nodes have to have been heard of.
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
    """The kernel makes a boot id anew at each boot (random(4)), so another one on the same machine ends this one.

    Not one on another machine of the same name: that says nothing about the first machine. Machines that report no system
    UUID, or one that many boards have, may be two.
    """
    for fact in facts:
        if not isinstance(fact, NodeSeen) or fact.boot_id in ("", boot.id):
            continue
        if fact.system_uuid == boot.system_uuid and not is_unset(boot.system_uuid):
            what = f"its machine has booted again, with boot id {fact.boot_id}"
            yield Proof(fact.at, what, ProofKind.NEW_BOOT, source=_other_boot_source(fact), certain=True)


def _other_boot_source(fact: NodeSeen) -> str:
    """The source of a proof by another boot."""
    return f"boot id {fact.boot_id}"


def _power_off_proofs(own: Iterable[Fact], terms: ProofTerms) -> Iterator[Proof]:
    """Of each source the latest two OFF that are far enough apart; the earlier one is when the boot was over."""
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
