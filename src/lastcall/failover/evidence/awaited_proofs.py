"""The proofs that are still possible for a boot, and when each is due at the latest (pure)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lastcall.failover.evidence.facts import (
    Boot,
    Fact,
    InstanceSeen,
    PowerSeen,
    StorageLease,
    WatchdogSeen,
    seconds_apart,
)
from lastcall.failover.evidence.proofs import ProofTerms, power_of, rules_out_agreement
from lastcall.model.power import PowerState

WITHOUT_FENCERS = "a new boot id, or a person's acknowledgement"
"""The proofs that end the wait where no fencer is called."""
ANYTHING = f"OFF twice from a fence device or a cloud, {WITHOUT_FENCERS}"
"""The proofs that end the wait in any case."""


@dataclass(frozen=True)
class AwaitedProof:
    """A possible proof; ``at``: when it is due if nothing else happens, on the observer's clock; None if unknown."""

    what: str
    at: float | None


def list_awaited(
    boot: Boot, facts: Iterable[Fact], now: float, terms: ProofTerms, *, quiet: float | None
) -> list[AwaitedProof]:
    """The possible proofs, soonest first; ``quiet``: when a proof outweighs the fresh sign of life."""
    own = [fact for fact in facts if fact.boot_id == boot.id]
    dated = list(_expiry_bounds(own, now))
    if quiet is not None:
        dated.append(AwaitedProof("that no other sign of life follows", quiet))
    return [*sorted(dated, key=lambda one: one.at or 0.0), *_second_answers(own, terms), AwaitedProof(ANYTHING, None)]


def _expiry_bounds(own: Iterable[Fact], now: float) -> Iterator[AwaitedProof]:
    """The bounds from the latest renewals; each renewal replaces the earlier ones."""
    watched = [fact for fact in own if isinstance(fact, WatchdogSeen)]
    if watched and rules_out_agreement(last := max(watched, key=lambda one: (one.renewed, one.read))):
        text = f"that its watchdog has reset it: {last.settings.bound_arithmetic} after the last renewal"
        if last.peers:
            text += ", and that half of the nodes confirm that they took no part in an agreement to let it live"
        confirming = last.peers is not None and last.reset_at is not None and last.read >= last.reset_at
        yield AwaitedProof(text, None if confirming else last.reset_at)  # nobody can say when they do
    stored = [fact for fact in own if isinstance(fact, StorageLease) and fact.dead_after is not None]
    if stored:
        lease = max(stored, key=lambda one: (one.renewed, one.read))
        assert lease.dead_after is not None
        over = lease.renewed + lease.dead_after
        text = f"that its lease on {lease.source} is not renewed, and that this is read from the storage"
        yield AwaitedProof(text, over if over > now else None)  # nobody can say when it is read


def _second_answers(own: Iterable[Fact], terms: ProofTerms) -> Iterator[AwaitedProof]:
    off: dict[str, list[PowerSeen | InstanceSeen]] = {}
    for fact in own:
        if isinstance(fact, PowerSeen | InstanceSeen) and power_of(fact) is PowerState.OFF:
            off.setdefault(fact.source, []).append(fact)
    for source, said in off.items():
        first = min(said, key=lambda one: one.answered)
        if all(seconds_apart(first, one) < terms.apart for one in said):
            yield AwaitedProof(f"a second OFF from {source}, {terms.apart:g} s after the first or later", None)
