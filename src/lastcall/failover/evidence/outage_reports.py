"""The nodes that did not report losing the API server, and for which time span (pure).

A watchdog petted by agreement needs reports from more than half of all nodes that its agent counts. If half of them or
more reported nothing, there was no agreement. Only the content of their Leases shows that: neither a live kubelet does,
nor the arrival of an agent's write, whose answer may be lost.

Each agent writes a token that it draws anew when it reports an outage (``PeerTerms.calm``). It reported nothing from
the first to the last time that it **wrote** the same token. The first write came before it was seen. The time of the
last one is harder: the state seen now may have been delayed for long. So the Leases are read live, in a survey that
notes their ``sequence``. If a Lease is ``CHAIN`` further, its token was taken after that survey began:

- The next write may have been under way when the survey began, so it shows nothing.
- The one after that depends on it, as each does on the one before: the agent knew its result, after the survey, and
  only then
took the token that it wrote (``ports.watchdog.WatchdogLease``). Its ``sequence`` grows for as long as the token stays
the same, even if the annotation was removed in between; so the watched token and the surveyed one must be equal.

Nodes are counted as the agent counts them, by the fingerprint of their names, even if nodes have come and gone since.
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
"""Seconds between two surveys. Enough are kept that agents which write every 40 s confirm the first one in time."""
_SURVEYS = 16
_AGAIN = 1.0
_ROSTERS = 1024


@dataclass(frozen=True)
class ReportToken:
    """The token in a node's Lease, and since when it was seen there."""

    calm: str
    since: float
    sequence: int


@dataclass(frozen=True)
class LeaseSurvey:
    """A live read of all such Leases that began at ``asked``: token and sequence of each."""

    asked: float
    leases: Mapping[str, tuple[str, int]]


def observe_token(before: ReportToken | None, promise: WatchdogPromise | None, now: float) -> ReportToken | None:
    """The observation after a Lease was seen with this promise; None if it has no token."""
    if promise is None or not promise.armed or promise.peers is None or not promise.peers.calm:
        return None
    same = before is not None and before.calm == promise.peers.calm
    return ReportToken(promise.peers.calm, before.since if before and same else now, promise.sequence)


def is_confirmed_by(word: ReportToken, survey: LeaseSurvey, name: str) -> bool:
    """Whether the token was written after the survey began."""
    calm, sequence = survey.leases.get(name, ("", 0))
    return word.calm == calm and word.sequence >= sequence + CHAIN


def is_survey_due(fact: WatchdogSeen, last: float | None, now: float) -> bool:
    """Whether a survey is due for this fact: its proof lacks nothing else, and the ``last`` one is long enough ago."""
    return (
        fact.reset_at is not None
        and not fact.is_expired
        and now >= fact.reset_at
        and (last is None or now - last >= PACE)
    )


def survey_leases(asked: float, leases: Iterable[WatchedLease]) -> LeaseSurvey:
    """Builds a survey from all Leases of a read that began at ``asked``."""
    found = {}
    for lease in leases:
        promise = parse_promise(lease.metadata.annotations)
        if promise and promise.peers:
            found[lease.metadata.name] = (promise.peers.calm, promise.sequence)
    return LeaseSurvey(asked, found)


def count_silent(
    members: Mapping[str, ReportToken], nodes: int, survey: LeaseSurvey | None
) -> NodesWithoutOutageReport:
    """Counts the silent members among ``nodes`` nodes: those that a survey confirms, or without one, those observed."""
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
    """The node sets of the past by fingerprint, in the memory of one set."""

    _names: dict[str, int] = field(default_factory=dict)
    """The number of the set since which each node exists."""
    _sets: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Number and size of each set, the latest last."""
    _number: int = 0

    def record_nodes(self, names: Iterable[str]) -> None:
        """Records the current set of nodes."""
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
        """The members of a set that have existed without interruption since, and its size; None: unknown set."""
        found = self._sets.get(mark)
        if found is None:
            return None
        number, size = found
        return [name for name, since in self._names.items() if since <= number], size


@dataclass
class OutageReportLog:
    """All observed tokens and surveys."""

    rosters: NodeSetHistory = field(default_factory=NodeSetHistory)
    _words: dict[str, ReportToken] = field(default_factory=dict)
    _tallies: dict[str, tuple[float, Sequence[NodesWithoutOutageReport]]] = field(default_factory=dict)
    """The last counts for each fingerprint, and when they were made."""
    _surveys: deque[LeaseSurvey] = field(default_factory=lambda: deque(maxlen=_SURVEYS))

    def observe_promise(self, name: str, promise: WatchdogPromise | None, now: float) -> None:
        """Records the promise in a node's Lease; None: it has none, or is gone."""
        word = observe_token(self._words.get(name), promise, now)
        if word is None:
            self._words.pop(name, None)
        else:
            self._words[name] = word

    def add_survey(self, survey: LeaseSurvey) -> None:
        """Adds the latest survey. Only the last few are kept, so they must not come more often than agents write."""
        self._surveys.append(survey)
        self._tallies.clear()

    @property
    def last_survey_at(self) -> float | None:
        """When the last survey began."""
        return self._surveys[-1].asked if self._surveys else None

    def silent_counts(self, mark: str, now: float) -> Sequence[NodesWithoutOutageReport]:
        """The counts for an agent with this node set: first by observation, then by each survey.

        Empty if the set is unknown. Computed at most once a second, shared by all agents with the same set: a confirmed
        count stays true.
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
