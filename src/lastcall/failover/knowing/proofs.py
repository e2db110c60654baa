"""What each fact shows of one boot (pure): that it was alive at some moment, or that it was over since some moment.

A boot that is over never comes back: a proof has no age at which it lapses. Only a sign of life that is later than a proof
speaks against it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from lastcall.failover.knowing.facts import (
    Acknowledged,
    Boot,
    Fact,
    InstanceSeen,
    LastWord,
    LeaseSeen,
    NodeSeen,
    PeerHeard,
    PowerSeen,
    StorageLease,
    WatchdogSeen,
    apart,
)
from lastcall.model import duration
from lastcall.model.power import Power
from lastcall.model.system_uuid import unset

LIVES = ("True", "False")
"""Values of the condition Ready that a kubelet writes; Unknown comes from who has missed it."""


FRESH, LEAST_FRESH = 20.0, 5.0
"""Seconds: for the 40 s that a kubelet's Lease lasts by default, and however short it is: a busy API server may take so
long for a renewal."""


def freshness(lasts: int | None) -> float:
    """``Terms.fresh`` of a kubelet by the seconds that its Lease lasts (``leaseDurationSeconds``); None: nobody knows.

    It renews it when a quarter of them is over (``NodeLeaseDurationSeconds`` and ``nodeLeaseRenewIntervalFraction`` of
    ``pkg/kubelet/kubelet.go``), so that in half of them two renewals are due.
    """
    return FRESH if lasts is None else max(LEAST_FRESH, lasts / 2)


def patience(suspect_after: float, fresh: float) -> float:
    """Seconds of silence after which a node is suspected: never before a renewal is overdue, however soon a policy would.

    ``fresh`` as ``freshness`` gives it: twice what lies between two renewals, of which this is one and a half.
    """
    return max(suspect_after, 0.75 * fresh)


@dataclass(frozen=True)
class Terms:
    """Seconds. A sign of life younger than ``fresh`` outweighs what says that the machine is off."""

    fresh: float = FRESH
    """Twice the time between two renewals of the kubelet's Lease: one was certainly due (``freshness``)."""
    apart: float = 1.0
    """At least so far apart are the two answers that count as one OFF: a device that is still switching may err once."""


@dataclass(frozen=True)
class Sign:
    """The boot was alive ``at``. ``machine``: its power was on, which says nothing of what runs on it."""

    at: float
    what: str
    machine: bool = False


class Kind(Enum):
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
    kind: Kind
    source: str = ""
    """The device or cloud that says so, or the other boot; else empty."""
    certain: bool = False
    """Another boot of the same machine reports: a sign of life need not be old before that counts."""
    word: bool = False
    """A person's: everything else that says ALIVE outweighs it."""


def signs(boot: Boot, facts: Iterable[Fact]) -> list[Sign]:
    """That the boot has lived, in no order. That its Node was first seen with its id is one of them."""
    found = [_sign(fact) for fact in facts if fact.boot_id == boot.id]
    return [Sign(boot.since, "its Node reported this boot id"), *(one for one in found if one)]


def proofs(boot: Boot, facts: Sequence[Fact], terms: Terms) -> list[Proof]:
    """Those that speak of a time after the boot was first seen; what is older means another one."""
    own = [fact for fact in facts if fact.boot_id == boot.id]
    every = [*_changes(boot, facts), *_switched_off(own, terms), *_expired(own), *_words(own)]
    return [one for one in every if one.since > boot.since]


def disbelieved(boot: Boot, facts: Iterable[Fact], lived: Iterable[Sign], terms: Terms) -> dict[str, str]:
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
            if fact.boot_id == boot.id and switched(fact) is Power.OFF and early:
                wrong[fact.source] = f"{fact.source} was wrong before: it said OFF, and something was heard later"
        elif isinstance(fact, NodeSeen) and fact.boot_id != boot.id and fact.at <= max(boot.since, shown):
            wrong[_other(fact)] = "the two have taken turns, as two machines of one name do"
    return wrong


def switched(fact: PowerSeen | InstanceSeen) -> Power:
    """What a device or a cloud has said."""
    return fact.power if isinstance(fact, PowerSeen) else fact.state.power


def counts(fact: WatchdogSeen) -> bool:
    """Whether the node cannot have petted its watchdog by agreement with others.

    Where its Lease says that it may, half of the nodes have to have said that they took no part (``calm``). Else it does
    not, and it is a precaution that half of the nodes have to have been heard of.
    """
    if fact.peers:
        return fact.peers.since is not None
    return 0 < fact.nodes <= 2 * fact.reachable


def _sign(fact: Fact) -> Sign | None:
    match fact:
        case NodeSeen(ready=ready, at=at) if ready in LIVES:
            return Sign(at, f"its kubelet reported Ready={ready}")
        case LeaseSeen(at=at):
            return Sign(at, "it renewed its Lease")
        case PeerHeard(peer=peer, at=at):
            return Sign(at, f"node {peer} heard it")
        case StorageLease(source=source, renewed=renewed, lived=lived):
            return Sign(renewed if lived is None else lived, f"it renewed its lease on {source}")
        case WatchdogSeen(renewed=renewed):
            return Sign(renewed, "its agent renewed its Lease")
        case LastWord(written=written, new=True):
            return Sign(written, "it wrote a NodeShutdown")
        case PowerSeen(asked=asked, source=source) | InstanceSeen(asked=asked, source=source):
            return Sign(asked, f"{source} said ON", machine=True) if switched(fact) is Power.ON else None
        case _:
            return None


def _changes(boot: Boot, facts: Iterable[Fact]) -> Iterator[Proof]:
    """The kernel makes a boot id anew at each boot (random(4)), so another one on the same machine ends this one.

    Not one on another machine of the same name: that says nothing about the first machine. Machines that report no system
    UUID, or one that many boards have, may be two.
    """
    for fact in facts:
        if not isinstance(fact, NodeSeen) or fact.boot_id in ("", boot.id):
            continue
        if fact.system_uuid == boot.system_uuid and not unset(boot.system_uuid):
            what = f"its machine has booted again, with boot id {fact.boot_id}"
            yield Proof(fact.at, what, Kind.NEW_BOOT, source=_other(fact), certain=True)


def _other(fact: NodeSeen) -> str:
    """The source of a proof by another boot."""
    return f"boot id {fact.boot_id}"


def _switched_off(own: Iterable[Fact], terms: Terms) -> Iterator[Proof]:
    """Of each source the latest two OFF that are far enough apart; the earlier one is when the boot was over."""
    answers: dict[str, list[PowerSeen | InstanceSeen]] = {}
    for fact in own:
        if isinstance(fact, PowerSeen | InstanceSeen) and switched(fact) is Power.OFF:
            answers.setdefault(fact.source, []).append(fact)
    for source, said in answers.items():
        latest = max(said, key=lambda one: one.asked)
        if first := [one.asked for one in said if apart(one, latest) >= terms.apart]:
            kind = Kind.FENCE if isinstance(said[0], PowerSeen) else Kind.INSTANCE
            yield Proof(max(first), f"{source} said OFF twice", kind, source=source)


def _expired(own: Iterable[Fact]) -> Iterator[Proof]:
    for fact in own:
        if isinstance(fact, WatchdogSeen) and counts(fact) and fact.expired and fact.over is not None:
            what = f"its watchdog has reset it, as no renewal followed in {fact.settings.arithmetic}"
            if fact.peers:
                what += f", and {fact.peers.calm} of {fact.peers.nodes} nodes never told it that they had lost the API server"
            yield Proof(fact.over, what, Kind.WATCHDOG)
        if isinstance(fact, StorageLease) and fact.dead_after is not None:
            since = fact.renewed + fact.dead_after
            if fact.read >= since:
                late = duration.of_seconds(fact.dead_after)
                what = f"its lease on {fact.source} was not renewed for {late}: a watchdog has reset it"
                yield Proof(since, what, Kind.STORAGE)


def _words(own: Iterable[Fact]) -> Iterator[Proof]:
    for fact in own:
        if isinstance(fact, Acknowledged):
            yield Proof(fact.at, f"a person says so, by {fact.how}", Kind.PERSON, word=True)
