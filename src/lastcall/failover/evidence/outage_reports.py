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

from lastcall.failover.evidence.facts import NodesWithoutOutageReport, WatchdogSeen
from lastcall.model.observed import WatchedLease
from lastcall.model.watchdog_lease import WatchdogPromise, parse_promise
from lastcall.model.watchdog_peers import fingerprint

CHAIN = 2

PACE = 10.0
"""Seconds between two surveys. So many are kept that agents which write every 40 s confirm the first one in time."""
_SURVEYS = 16
_AGAIN = 1.0
_ROSTERS = 1024


@dataclass(frozen=True)
class ReportToken:
    """What a node's Lease says now, and since when it was seen to say it."""

    calm: str
    since: float
    sequence: int


@dataclass(frozen=True)
class LeaseSurvey:
    """All such Leases were read live, which was ``asked`` for then: word and sequence of each that says one."""

    asked: float
    leases: Mapping[str, tuple[str, int]]


def observe_token(before: ReportToken | None, promise: WatchdogPromise | None, now: float) -> ReportToken | None:
    """What is known after a Lease was seen to say this; None if it says nothing of others."""
    if promise is None or not promise.armed or promise.peers is None or not promise.peers.calm:
        return None
    same = before is not None and before.calm == promise.peers.calm
    return ReportToken(promise.peers.calm, before.since if before and same else now, promise.sequence)


def is_confirmed_by(word: ReportToken, survey: LeaseSurvey, name: str) -> bool:
    """Whether it was said after the survey was asked for."""
    calm, sequence = survey.leases.get(name, ("", 0))
    return word.calm == calm and word.sequence >= sequence + CHAIN


def is_survey_due(fact: WatchdogSeen, last: float | None, now: float) -> bool:
    """Whether the Leases are to be read for this: its proof lacks nothing else, and the ``last`` time is long enough ago."""
    return (
        fact.reset_at is not None
        and not fact.is_expired
        and now >= fact.reset_at
        and (last is None or now - last >= PACE)
    )


def survey_leases(asked: float, leases: Iterable[WatchedLease]) -> LeaseSurvey:
    """From all that were read, which was ``asked`` for then."""
    found = {}
    for lease in leases:
        promise = parse_promise(lease.metadata.annotations)
        if promise and promise.peers:
            found[lease.metadata.name] = (promise.peers.calm, promise.sequence)
    return LeaseSurvey(asked, found)


def count_silent(
    members: Mapping[str, ReportToken], nodes: int, survey: LeaseSurvey | None
) -> NodesWithoutOutageReport:
    """Of ``nodes`` nodes, of which ``members`` say something; by one survey, or by what is seen alone."""
    known = sorted(
        word.since for name, word in members.items() if survey is None or is_confirmed_by(word, survey, name)
    )
    needed = (nodes + 1) // 2
    if nodes < 1 or len(known) < needed:
        return NodesWithoutOutageReport(nodes=nodes, calm=len(known))
    return NodesWithoutOutageReport(
        nodes=nodes, calm=len(known), since=known[needed - 1], until=survey.asked if survey else None
    )


@dataclass
class NodeSetHistory:
    """The sets of nodes that there have been, by their fingerprints, at the cost of one set."""

    _names: dict[str, int] = field(default_factory=dict)
    """Since which set each node is there."""
    _sets: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number and size of each, the latest last."""
    _number: int = 0

    def record_nodes(self, names: Iterable[str]) -> None:
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

    def find_members(self, mark: str) -> tuple[list[str], int] | None:
        """Those of a set that are still there, without having gone between, and how many it had; None: not known."""
        found = self._sets.get(mark)
        if found is None:
            return None
        number, size = found
        return [name for name, since in self._names.items() if since <= number], size


@dataclass
class OutageReportLog:
    """All that is known of it."""

    rosters: NodeSetHistory = field(default_factory=NodeSetHistory)
    _words: dict[str, ReportToken] = field(default_factory=dict)
    _tallies: dict[str, tuple[float, Sequence[NodesWithoutOutageReport]]] = field(default_factory=dict)
    """What was counted last by each fingerprint, and when."""
    _surveys: deque[LeaseSurvey] = field(default_factory=lambda: deque(maxlen=_SURVEYS))

    def observe_promise(self, name: str, promise: WatchdogPromise | None, now: float) -> None:
        """A node's own Lease says this now; None: nothing, or it is gone."""
        word = observe_token(self._words.get(name), promise, now)
        if word is None:
            self._words.pop(name, None)
        else:
            self._words[name] = word

    def add_survey(self, survey: LeaseSurvey) -> None:
        """The latest one. Only the last few are kept, so that they should not come more often than agents write."""
        self._surveys.append(survey)
        self._tallies.clear()

    @property
    def last_survey_at(self) -> float | None:
        """When the last one was asked for."""
        return self._surveys[-1].asked if self._surveys else None

    def silent_counts(self, mark: str, now: float) -> Sequence[NodesWithoutOutageReport]:
        """For an agent that counts the nodes of this fingerprint: what is seen, and then what each survey has confirmed.

        Empty if nobody knows which nodes these are. It is counted once a second at most, for all agents that count the same
        nodes: what has been confirmed stays true.
        """
        at, tallies = self._tallies.get(mark, (0.0, None))
        if tallies is None or now - at >= _AGAIN:
            tallies = self._count_all(mark)
            self._tallies[mark] = (now, tallies)
        return tallies

    def _count_all(self, mark: str) -> Sequence[NodesWithoutOutageReport]:
        found = self.rosters.find_members(mark)
        if found is None:
            return ()
        names, nodes = found
        members = {name: self._words[name] for name in names if name in self._words}
        return tuple(count_silent(members, nodes, survey) for survey in (None, *self._surveys))
