"""What would prove that a boot is over, and when at the latest (pure)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lastcall.failover.knowing.facts import Boot, Fact, InstanceSeen, PowerSeen, StorageLease, WatchdogSeen, apart
from lastcall.failover.knowing.proofs import Terms, counts, switched
from lastcall.model.power import Power

WITHOUT_FENCERS = "a new boot id, or a person's acknowledgement"
"""What ends the waiting where no fencer is asked."""
ANYTHING = f"OFF twice from a fence device or a cloud, {WITHOUT_FENCERS}"
"""What ends it in any case."""


@dataclass(frozen=True)
class Awaited:
    """``at``: when it will have happened if nothing else comes, on the observer's clock; None if nobody can say."""

    what: str
    at: float | None


def of(boot: Boot, facts: Iterable[Fact], now: float, terms: Terms, *, quiet: float | None) -> list[Awaited]:
    """The soonest first; ``quiet``: when a proof that a fresh sign of life outweighs will stand, if none follows."""
    own = [fact for fact in facts if fact.boot_id == boot.id]
    dated = list(_bounds(own, now))
    if quiet is not None:
        dated.append(Awaited("that no other sign of life follows", quiet))
    return [*sorted(dated, key=lambda one: one.at or 0.0), *_second_answers(own, terms), Awaited(ANYTHING, None)]


def _bounds(own: Iterable[Fact], now: float) -> Iterator[Awaited]:
    """Of the last renewals alone: each makes those before it meaningless."""
    watched = [fact for fact in own if isinstance(fact, WatchdogSeen)]
    if watched and counts(last := max(watched, key=lambda one: (one.renewed, one.read))):
        text = f"that its watchdog has reset it: {last.settings.arithmetic} after the last renewal"
        if last.peers:
            text += ", and that half of the nodes confirm that they took no part in an agreement to let it live"
        confirming = last.peers is not None and last.over is not None and last.read >= last.over
        yield Awaited(text, None if confirming else last.over)  # nobody can say when they do
    stored = [fact for fact in own if isinstance(fact, StorageLease) and fact.dead_after is not None]
    if stored:
        lease = max(stored, key=lambda one: (one.renewed, one.read))
        assert lease.dead_after is not None
        over = lease.renewed + lease.dead_after
        text = f"that its lease on {lease.source} is not renewed, and that this is read from the storage"
        yield Awaited(text, over if over > now else None)  # nobody can say when it is read


def _second_answers(own: Iterable[Fact], terms: Terms) -> Iterator[Awaited]:
    off: dict[str, list[PowerSeen | InstanceSeen]] = {}
    for fact in own:
        if isinstance(fact, PowerSeen | InstanceSeen) and switched(fact) is Power.OFF:
            off.setdefault(fact.source, []).append(fact)
    for source, said in off.items():
        first = min(said, key=lambda one: one.answered)
        if all(apart(first, one) < terms.apart for one in said):
            yield Awaited(f"a second OFF from {source}, {terms.apart:g} s after the first or later", None)
