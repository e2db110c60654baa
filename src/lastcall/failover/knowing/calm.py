"""Which nodes have told no other one that the API server is lost to them, from when until when (pure).

A watchdog that is petted by agreement needs reports of more than half of all nodes that its agent counts. Whoever knows of
half of them, or more, that they have reported nothing, knows that there was no agreement. What they say in their Leases shows
it, and nothing else does: neither that a kubelet is heard, nor that an agent's write arrives, whose answer may be lost.

Each agent writes a word that it draws anew when it reports (``PeerTerms.calm``). It has reported nothing from the first to
the last time that it **said** the same word. The first one was said before it was seen. When the last one was said is harder:
what is seen now may have been on its way for long. So the Leases are read live, a survey, and their ``sequence`` noted. When a
Lease is ``CHAIN`` further, its word was said after that survey was asked for:

- the next write may have been under way when the survey was asked for, so that nothing follows from it;
- the one after that is bound to it, as each is to the one before: the agent knew of it, after the survey, and only then
  took the word that it wrote (``ports_watchdog.WatchdogLease``). Its ``sequence`` grows for as long as it says the same word, also if
  somebody has removed what it wrote; so what was seen, and what was read live, have to be the same word.

Nodes are counted as the agent counts them, by the fingerprint of their names, also if nodes have come and gone since.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lastcall.failover.knowing.facts import Calm, WatchdogSeen
from lastcall.model.observed import WatchedLease
from lastcall.model.watchdog_lease import Promise, promised
from lastcall.model.watchdog_peers import fingerprint

CHAIN = 2

PACE = 10.0
"""Seconds between two surveys. So many are kept that agents which write every 40 s confirm the first one in time."""
_SURVEYS = 16
_AGAIN = 1.0
_ROSTERS = 1024


@dataclass(frozen=True)
class Word:
    """What a node's Lease says now, and since when it was seen to say it."""

    calm: str
    since: float
    sequence: int


@dataclass(frozen=True)
class Survey:
    """All such Leases were read live, which was ``asked`` for then: word and sequence of each that says one."""

    asked: float
    leases: Mapping[str, tuple[str, int]]


def heard(before: Word | None, promise: Promise | None, now: float) -> Word | None:
    """What is known after a Lease was seen to say this; None if it says nothing of others."""
    if promise is None or not promise.armed or promise.peers is None or not promise.peers.calm:
        return None
    same = before is not None and before.calm == promise.peers.calm
    return Word(promise.peers.calm, before.since if before and same else now, promise.sequence)


def confirmed(word: Word, survey: Survey, name: str) -> bool:
    """Whether it was said after the survey was asked for."""
    calm, sequence = survey.leases.get(name, ("", 0))
    return word.calm == calm and word.sequence >= sequence + CHAIN


def due(fact: WatchdogSeen, last: float | None, now: float) -> bool:
    """Whether the Leases are to be read for this: its proof lacks nothing else, and the ``last`` time is long enough ago."""
    return fact.over is not None and not fact.expired and now >= fact.over and (last is None or now - last >= PACE)


def survey(asked: float, leases: Iterable[WatchedLease]) -> Survey:
    """From all that were read, which was ``asked`` for then."""
    found = {}
    for lease in leases:
        promise = promised(lease.metadata.annotations)
        if promise and promise.peers:
            found[lease.metadata.name] = (promise.peers.calm, promise.sequence)
    return Survey(asked, found)


def tally(members: Mapping[str, Word], nodes: int, survey: Survey | None) -> Calm:
    """Of ``nodes`` nodes, of which ``members`` say something; by one survey, or by what is seen alone."""
    known = sorted(word.since for name, word in members.items() if survey is None or confirmed(word, survey, name))
    needed = (nodes + 1) // 2
    if nodes < 1 or len(known) < needed:
        return Calm(nodes=nodes, calm=len(known))
    return Calm(nodes=nodes, calm=len(known), since=known[needed - 1], until=survey.asked if survey else None)


@dataclass
class Rosters:
    """The sets of nodes that there have been, by their fingerprints, at the cost of one set."""

    _names: dict[str, int] = field(default_factory=dict)
    """Since which set each node is there."""
    _sets: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number and size of each, the latest last."""
    _number: int = 0

    def now(self, names: Iterable[str]) -> None:
        """All nodes that there are now."""
        present = set(names)
        if self._sets and present == self._names.keys():
            return
        self._number += 1
        self._names = {name: self._names.get(name, self._number) for name in sorted(present)}
        mark = fingerprint(present)
        self._sets.pop(mark, None)
        self._sets[mark] = (self._number, len(present))
        while len(self._sets) > _ROSTERS:
            del self._sets[next(iter(self._sets))]

    def find(self, mark: str) -> tuple[list[str], int] | None:
        """Those of a set that are still there, without having gone between, and how many it had; None: not known."""
        found = self._sets.get(mark)
        if found is None:
            return None
        number, size = found
        return [name for name, since in self._names.items() if since <= number], size


@dataclass
class Calmness:
    """All that is known of it."""

    rosters: Rosters = field(default_factory=Rosters)
    _words: dict[str, Word] = field(default_factory=dict)
    _tallies: dict[str, tuple[float, Sequence[Calm]]] = field(default_factory=dict)
    """What was counted last by each fingerprint, and when."""
    _surveys: deque[Survey] = field(default_factory=lambda: deque(maxlen=_SURVEYS))

    def hear(self, name: str, promise: Promise | None, now: float) -> None:
        """A node's own Lease says this now; None: nothing, or it is gone."""
        word = heard(self._words.get(name), promise, now)
        if word is None:
            self._words.pop(name, None)
        else:
            self._words[name] = word

    def surveyed(self, survey: Survey) -> None:
        """The latest one. Only the last few are kept, so that they should not come more often than agents write."""
        self._surveys.append(survey)
        self._tallies.clear()

    @property
    def surveyed_at(self) -> float | None:
        """When the last one was asked for."""
        return self._surveys[-1].asked if self._surveys else None

    def by(self, mark: str, now: float) -> Sequence[Calm]:
        """For an agent that counts the nodes of this fingerprint: what is seen, and then what each survey has confirmed.

        Empty if nobody knows which nodes these are. It is counted once a second at most, for all agents that count the same
        nodes: what has been confirmed stays true.
        """
        at, tallies = self._tallies.get(mark, (0.0, None))
        if tallies is None or now - at >= _AGAIN:
            tallies = self._counted(mark)
            self._tallies[mark] = (now, tallies)
        return tallies

    def _counted(self, mark: str) -> Sequence[Calm]:
        found = self.rosters.find(mark)
        if found is None:
            return ()
        names, nodes = found
        members = {name: self._words[name] for name in names if name in self._words}
        return tuple(tally(members, nodes, survey) for survey in (None, *self._surveys))
