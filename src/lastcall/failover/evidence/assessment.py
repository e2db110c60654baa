"""Is it really off? What the facts about one boot add up to (pure): DEAD, ALIVE or UNKNOWN, with the reasons.

Only DEAD lets anything be forced. It takes a proof: time alone is none, however much of it passes. Where a sign of life and
a proof contradict each other the answer is ALIVE, so that nothing that is left out or arrives late can turn UNKNOWN into
DEAD.
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
    """What is known of one boot."""

    DEAD = "DEAD"
    """It is over, and cannot come back: at most another boot of the machine can."""
    ALIVE = "ALIVE"
    """The last that is known of it is life: a short time ago, or later than what would otherwise prove its end."""
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, kw_only=True)
class BootVerdict:
    """The answer for one boot; reasons are sentences for people, the ones that decide first."""

    boot_id: str
    state: BootState
    reasons: tuple[str, ...]
    awaited: tuple[AwaitedProof, ...]
    """What would make it DEAD; empty if it is."""
    kinds: frozenset[ProofKind] = frozenset()
    """Of all the proofs that stand; empty unless it is DEAD."""


DEFAULT = ProofTerms()


def assess(boot: Boot, facts: Iterable[Fact], now: float, terms: ProofTerms = DEFAULT) -> BootVerdict:
    """The verdict at ``now``. Facts about other boots may be among them, in any order, and more than once."""
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
    """Until when fencing waits, because the node has said itself that it goes down; None if nothing holds it back."""
    word = latest_announcement(boot, facts)
    return word.deadline if word and now < word.deadline else None


def ended_pod_uids(boot: Boot, facts: Iterable[Fact]) -> frozenset[str]:
    """UIDs of the pods that this boot has ended and unmounted, as it said itself: these need no proof of its death.

    Nothing follows for another boot, whose kubelet starts again what is still bound to the node.
    """
    word = latest_announcement(boot, facts)
    return word.gone if word else frozenset()


@dataclass(frozen=True)
class _Objection:
    """What speaks against a proof, as the end of a sentence; ``until``: when it does no more, if nothing follows."""

    what: str
    until: float | None = None


def _objection_to(
    proof: Proof, lived: Sequence[LifeSign], false: dict[str, str], now: float, terms: ProofTerms
) -> _Objection | None:
    """None if nothing speaks against it."""
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
    """Whether a sign counts although it came before the proof, while it is fresh.

    A machine that was on and is off now is what switching off looks like; a person's word yields to it all the same.
    """
    return not proof.certain and (not sign.machine or proof.word)


def _time_ago(now: float, at: float) -> str:
    return f"{duration.format_elapsed(now - at)} ago"
