"""The verdict on one boot from all facts about it (pure): DEAD, ALIVE or UNKNOWN, with the reasons.

Only DEAD allows force. It requires a proof: elapsed time alone is none. If a sign of life contradicts a proof, the
verdict is ALIVE, so that no missing or late fact can turn UNKNOWN into DEAD.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from lastcall.failover.evidence import awaited_proofs, remarks
from lastcall.failover.evidence.awaited_proofs import AwaitedProof
from lastcall.failover.evidence.facts import Boot, Fact, latest_announcement
from lastcall.failover.evidence.proofs import (
    LifeSign,
    Proof,
    ProofKind,
    ProofTerms,
    distrusted_sources,
    life_signs,
    list_proofs,
)
from lastcall.model import duration


class BootState(Enum):
    """The state of one boot."""

    DEAD = "DEAD"
    """The boot is over and cannot come back; only another boot of the machine can."""
    ALIVE = "ALIVE"
    """The latest evidence is a sign of life: a recent one, or one later than an apparent proof of the boot's end."""
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, kw_only=True)
class BootVerdict:
    """The verdict on one boot; the reasons are sentences for people, the decisive ones first."""

    boot_id: str
    state: BootState
    reasons: tuple[str, ...]
    awaited: tuple[AwaitedProof, ...]
    """The proofs that would make it DEAD; empty if it is."""
    kinds: frozenset[ProofKind] = frozenset()
    """The kinds of all valid proofs; empty unless it is DEAD."""


DEFAULT = ProofTerms()


def assess(boot: Boot, facts: Iterable[Fact], now: float, terms: ProofTerms = DEFAULT) -> BootVerdict:
    """The verdict at ``now``. The facts may include other boots, in any order, and duplicates."""
    known = sorted(set(facts), key=repr)
    lived = life_signs(boot, known)
    false = distrusted_sources(boot, known, lived, terms)
    found = [(proof, _objection_to(proof, lived, false, now, terms)) for proof in list_proofs(boot, known, terms)]
    if standing := [proof for proof, objection in found if objection is None]:
        reasons = tuple(dict.fromkeys(f"{one.what}, {_time_ago(now, one.since)}" for one in standing))
        kinds = frozenset(one.kind for one in standing)
        return BootVerdict(boot_id=boot.id, state=BootState.DEAD, reasons=reasons, awaited=(), kinds=kinds)
    last = max(lived, key=lambda one: one.at)
    objections = [f"{proof.what}, but {objection.what}" for proof, objection in found if objection]
    alive = bool(objections) or now - last.at < terms.fresh
    why = [
        *objections,
        f"{last.what} {_time_ago(now, last.at)}" + ("" if alive else ", and no sign of life has followed"),
    ]
    quiet = [objection.until for _, objection in found if objection and objection.until is not None]
    return BootVerdict(
        boot_id=boot.id,
        state=BootState.ALIVE if alive else BootState.UNKNOWN,
        reasons=tuple(dict.fromkeys([*why, *remarks.list_remarks(boot, known)])),
        awaited=tuple(awaited_proofs.list_awaited(boot, known, now, terms, quiet=min(quiet, default=None))),
    )


def fencing_held_until(boot: Boot, facts: Iterable[Fact], now: float) -> float | None:
    """Until when fencing waits because the node announced its shutdown; None if it does not."""
    word = latest_announcement(boot, facts)
    return word.deadline if word and now < word.deadline else None


def ended_pod_uids(boot: Boot, facts: Iterable[Fact]) -> frozenset[str]:
    """UIDs of the pods that this boot reported as ended and unmounted; they need no proof of its death.

    The report does not hold for another boot, whose kubelet restarts all pods that are still bound to the node.
    """
    word = latest_announcement(boot, facts)
    return word.gone if word else frozenset()


@dataclass(frozen=True)
class _Objection:
    """An objection to a proof, as the end of a sentence; ``until``: when it expires without another sign of life."""

    what: str
    until: float | None = None


def _objection_to(
    proof: Proof, lived: Sequence[LifeSign], false: dict[str, str], now: float, terms: ProofTerms
) -> _Objection | None:
    """The objection to a proof; None if there is none."""
    later = [sign for sign in lived if sign.at >= proof.since and not (proof.certain and sign.machine)]
    if later:
        last = max(later, key=lambda one: one.at)
        return _Objection(f"after that {last.what} {_time_ago(now, last.at)}")
    if proof.source in false:
        return _Objection(false[proof.source])
    fresh = [sign for sign in lived if _sign_outweighs(sign, proof) and now - sign.at < terms.fresh]
    if not fresh:
        return None
    last = max(fresh, key=lambda one: one.at)
    return _Objection(f"only {_time_ago(now, last.at)} {last.what}", last.at + terms.fresh)


def _sign_outweighs(sign: LifeSign, proof: Proof) -> bool:
    """Whether a fresh sign of life counts against a proof although it is older than the proof.

    A machine that was on and is now off is the normal result of a power-off, but an acknowledgement yields even to
    that.
    """
    return not proof.certain and (not sign.machine or proof.word)


def _time_ago(now: float, at: float) -> str:
    return f"{duration.format_elapsed(now - at)} ago"
