"""Which nodes have reported nothing, from when until when: tables, and a property over every course of writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.failover.evidence import outage_reports
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot, NodesWithoutOutageReport
from lastcall.failover.evidence.outage_reports import (
    CHAIN,
    LeaseSurvey,
    NodeSetHistory,
    OutageReportLog,
    ReportToken,
    count_silent,
    is_confirmed_by,
    observe_token,
)
from lastcall.failover.evidence.watchdog_observation import observe_lease as seen_to_say
from lastcall.failover.evidence.watchdog_observation import watchdog_evidence
from lastcall.model.observed import WatchedLease
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_lease import WatchdogPromise, to_annotations, with_next_sequence
from lastcall.model.watchdog_peers import PeerTerms, fingerprint
from lastcall.watchdog.agreement import find_agreement

SETTINGS = WatchdogTiming(
    lease=40, pet=4, timeout=10, drift=0, peers=True
)  # a report counts for 20 s, the bound is 70 s


def says(word, sequence=1, *, nodes="x", armed=True):
    promise = WatchdogPromise.from_timing("b", SETTINGS, PeerTerms(nodes=nodes, calm=word))
    return WatchdogPromise(boot_id="b", sequence=sequence) if not armed else with_next_sequence(sequence - 1, promise)


def word(since=0.0, sequence=10):
    return ReportToken("w", since, sequence)


def test_a_word_counts_from_when_it_was_seen_first():
    first = observe_token(None, says("a", 1), 100)
    assert first == ReportToken("a", 100, 1)
    assert observe_token(first, says("a", 2), 105) == ReportToken("a", 100, 2)
    assert observe_token(first, says("b", 3), 110) == ReportToken("b", 110, 3)


@pytest.mark.parametrize(
    "promise", [None, says("a", armed=False), says(""), WatchdogPromise.from_timing("b", SETTINGS)]
)
def test_who_says_nothing_of_others_is_not_known_to_be_calm(promise):
    assert observe_token(word(), promise, 5) is None


@pytest.mark.parametrize(
    ("found", "is_confirmed"),
    [
        ({"n": ("w", 10)}, False),
        ({"n": ("w", 10 - CHAIN + 1)}, False),
        ({"n": ("w", 10 - CHAIN)}, True),
        ({"n": ("other", 0)}, False),  # what was seen may be of long ago
        ({}, False),
    ],
)
def test_a_word_is_confirmed_by_writes_that_began_after_the_survey(found, is_confirmed):
    assert is_confirmed_by(word(), LeaseSurvey(100, found), "n") is is_confirmed


@pytest.mark.parametrize(
    ("nodes", "since", "told"),
    [
        (3, [1], NodesWithoutOutageReport(nodes=3, calm=1)),
        (3, [1, 5], NodesWithoutOutageReport(nodes=3, calm=2, since=5)),
        (4, [1, 5], NodesWithoutOutageReport(nodes=4, calm=2, since=5)),  # the other two are no majority
        (5, [1, 5], NodesWithoutOutageReport(nodes=5, calm=2)),
        (5, [9, 1, 5], NodesWithoutOutageReport(nodes=5, calm=3, since=9)),
        (3, [9, 1, 5], NodesWithoutOutageReport(nodes=3, calm=3, since=5)),  # the two that have been calm for longest
        (1, [], NodesWithoutOutageReport(nodes=1, calm=0)),
        (0, [], NodesWithoutOutageReport(nodes=0, calm=0)),
    ],
)
def test_half_of_all_nodes_since_when(nodes, since, told):
    members = {f"n{index}": word(at) for index, at in enumerate(since)}
    assert count_silent(members, nodes, None) == told


def test_by_a_survey_only_those_count_whom_it_confirms():
    members = {"n1": word(1), "n2": word(2), "n3": word(3)}
    survey = LeaseSurvey(50, {"n1": ("w", 8), "n2": ("w", 9), "n3": ("w", 8)})
    assert count_silent(members, 3, survey) == NodesWithoutOutageReport(nodes=3, calm=2, since=3, until=50)
    assert count_silent(members, 5, survey) == NodesWithoutOutageReport(nodes=5, calm=2)


def test_a_survey_is_made_of_what_was_read():
    leases = [
        {"metadata": {"name": "n1", "annotations": to_annotations(says("a", 7))}},
        {"metadata": {"name": "n2"}},
    ]
    import msgspec

    found = outage_reports.survey_leases(5, [msgspec.convert(one, WatchedLease) for one in leases])
    assert found == LeaseSurvey(5, {"n1": ("a", 7)})


def test_sets_of_nodes_are_known_by_their_fingerprints_when_nodes_have_come_and_gone():
    rosters = NodeSetHistory()
    for names in ("abc", "abcd", "bcd", "abcd"):
        rosters.record_nodes(names)
    assert rosters.find_members(fingerprint("abc")) == (["b", "c"], 3)  # another a has come since
    assert rosters.find_members(fingerprint("abcd")) == (["a", "b", "c", "d"], 4)
    assert rosters.find_members(fingerprint("bcd")) == (["b", "c", "d"], 3)
    assert rosters.find_members(fingerprint("ab")) is None


def test_it_is_counted_once_a_second_and_after_each_survey():
    known = OutageReportLog()
    known.rosters.record_nodes(["n"])
    mark = fingerprint(["n"])
    known.observe_promise("n", says("a"), 10)
    assert known.silent_counts(mark, 10) == (NodesWithoutOutageReport(nodes=1, calm=1, since=10),)
    known.observe_promise("n", says("b"), 10.5)
    assert known.silent_counts(mark, 10.5)[0].since == 10  # nothing that was confirmed becomes untrue
    assert known.silent_counts(mark, 11)[0].since == 10.5
    known.add_survey(LeaseSurvey(11, {"n": ("b", 1)}))
    assert len(known.silent_counts(mark, 11)) == 2


def seen(since, *, read, calm):
    promise = says("x")
    watched = seen_to_say(None, annotations=to_annotations(promise), renewed="r", now=since)
    return watchdog_evidence(watched, read=read, contacts=[], calm=calm)


@pytest.mark.parametrize(
    ("found", "read", "over", "expired"),
    [
        ([], 1000, None, False),  # nobody knows which nodes it counts
        ([NodesWithoutOutageReport(nodes=3, calm=1)], 1000, None, False),
        ([NodesWithoutOutageReport(nodes=3, calm=2, since=0)], 1000, 170, False),  # not confirmed
        ([NodesWithoutOutageReport(nodes=3, calm=2, since=0, until=170)], 1000, 170, True),
        ([NodesWithoutOutageReport(nodes=3, calm=2, since=0, until=169)], 1000, 170, False),
        (
            [NodesWithoutOutageReport(nodes=3, calm=2, since=0, until=170)],
            169,
            170,
            False,
        ),  # a renewal may have followed
        (
            [NodesWithoutOutageReport(nodes=3, calm=2, since=120, until=170)],
            170,
            170,
            True,
        ),  # reports of before are too old by then
        ([NodesWithoutOutageReport(nodes=3, calm=2, since=121, until=170)], 171, 171, False),
        ([NodesWithoutOutageReport(nodes=3, calm=2, since=200, until=250)], 300, 250, True),
        (
            [
                NodesWithoutOutageReport(nodes=3, calm=2, since=0),
                NodesWithoutOutageReport(nodes=3, calm=1, until=80),
                NodesWithoutOutageReport(nodes=3, calm=2, since=5, until=180),
            ],
            200,
            170,
            True,
        ),
    ],
)
def test_when_its_watchdog_has_reset_it(found, read, over, expired):
    fact = seen(100, read=read, calm=found)
    assert (fact.reset_at, fact.is_expired) == (over, expired)


def test_a_survey_is_due_when_nothing_else_is_missing():
    late = seen(100, read=200, calm=[NodesWithoutOutageReport(nodes=3, calm=2, since=0)])
    assert not outage_reports.is_survey_due(late, None, 169)
    assert outage_reports.is_survey_due(late, None, 170)
    assert not outage_reports.is_survey_due(late, 165, 174)
    assert outage_reports.is_survey_due(late, 165, 175)
    assert not outage_reports.is_survey_due(
        seen(100, read=200, calm=[NodesWithoutOutageReport(nodes=3, calm=1)]), None, 1000
    )
    assert not outage_reports.is_survey_due(
        seen(100, read=200, calm=[NodesWithoutOutageReport(nodes=3, calm=2, since=0, until=180)]), None, 1000
    )


def awaited(fact):
    return [
        one.at for one in assess(Boot(id="b", system_uuid="m", since=0), [fact], 500).awaited if "half of" in one.what
    ]


@pytest.mark.parametrize(
    ("found", "read", "at", "remark"),
    [
        ([NodesWithoutOutageReport(nodes=3, calm=2, since=0)], 169, [170], ""),
        (
            [NodesWithoutOutageReport(nodes=3, calm=2, since=0)],
            170,
            [None],
            "",
        ),  # nobody can say when others confirm it
        ([NodesWithoutOutageReport(nodes=3, calm=1)], 300, [], "only 1 of the 3 nodes that it counts"),
        ([], 300, [], "it is not known which nodes its agent counts"),
    ],
)
def test_what_is_awaited_and_remarked(found, read, at, remark):
    fact = seen(100, read=read, calm=found)
    assert awaited(fact) == at
    verdict = assess(Boot(id="b", system_uuid="m", since=0), [fact], 500)
    assert verdict.state is BootState.UNKNOWN
    assert remark in " ".join(verdict.reasons)


def test_a_proof_tells_how_many_were_calm():
    verdict = assess(
        Boot(id="b", system_uuid="m", since=0),
        [seen(100, read=200, calm=[NodesWithoutOutageReport(nodes=3, calm=2, since=0, until=190)])],
        500,
    )
    assert verdict.state is BootState.DEAD
    assert "and 2 of 3 nodes never told it that they had lost the API server" in verdict.reasons[0]


# -- every course of writes --------------------------------------------------------------------------------------------


class Course:
    """One agent, its Lease, what is under way, and a controller that hears late. Time is the number of steps."""

    def __init__(self):
        self.now = self.lives = self.revision = 0
        self.reports, self.coming, self.way = [], [], []
        self.known = OutageReportLog()
        self.known.rosters.record_nodes(["n"])
        self.restart()
        self._stands(None)

    def _stands(self, promise):
        self.revision += 1
        self.lease = (self.revision, promise)
        self.coming.append(promise)

    def _read(self):
        """What stands there; what is known of it from before is as good, or will be refused."""
        revision, before = self.base or self.lease
        self.highest = max(self.highest, before.sequence if before else 0)
        return revision

    def step(self, what):
        self.now += 1
        getattr(self, STEPS[what])()
        for one in self.known.silent_counts(fingerprint(["n"]), self.now):
            if one.until is not None:
                assert not [at for at in self.reports if one.since <= at <= one.until], (one, self.reports)

    def write(self):
        """What stands there is known, or is read now; the word is taken afterwards."""
        if not self.trying:
            self._read()
            self.trying, self.base = True, self.base or self.lease

    def send(self):
        """Also again, after what stands there was read again."""
        if self.trying:
            revision, self.base = self._read(), None
            self.way.append((revision, with_next_sequence(self.highest, says(self.word, nodes=fingerprint(["n"])))))

    def arrive(self):
        """The oldest that is under way; refused if it is not bound to what stands."""
        if self.way:
            revision, promise = self.way.pop(0)
            if revision == self.lease[0]:
                self._stands(promise)

    def overtake(self):
        self.way = self.way[1:] + self.way[:1]

    def answer(self):
        """The attempt is over, and what stands there known."""
        if self.trying:
            self.trying, self.base = False, self.lease

    def give_up(self):
        self.trying, self.base = False, None

    def report(self):
        self.reports.append(self.now)
        self.word = f"{self.lives}.{self.now}"

    def hear(self):
        if self.coming:
            self.known.observe_promise("n", self.coming.pop(0), self.now)

    def survey(self):
        promise = self.lease[1]
        self.known.add_survey(LeaseSurvey(self.now, {"n": (promise.peers.calm, promise.sequence)} if promise else {}))

    def restart(self):
        """Another life of the agent; what the one before has sent is still under way."""
        self.lives += 1
        self.word = f"{self.lives}.{self.now}"
        self.trying, self.base, self.highest = False, None, 0

    def remove(self):
        """Somebody removes what it says."""
        self._stands(None)


STEPS = ["write", "send", "arrive", "overtake", "answer", "give_up", "report", "hear", "survey", "restart", "remove"]
WRITE, SEND, ARRIVE, OVERTAKE, ANSWER, GIVE_UP, REPORT, HEAR, SURVEY, RESTART, REMOVE = range(len(STEPS))
WELL = [WRITE, SEND, ARRIVE, ANSWER, HEAR]
PARTS = [
    *([one] for one in range(11)),
    WELL,
    WELL,
    [WRITE, SEND],
    [WRITE, SEND, REPORT, SURVEY, ARRIVE],
    [SEND, ARRIVE, HEAR],
    [REPORT, SURVEY],
    [HEAR, HEAR],
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=16))
def test_in_no_course_of_events_is_a_node_taken_for_calm_that_has_reported(parts):
    course = Course()
    for part in [[HEAR], WELL, *parts]:
        for what in part:
            course.step(what)


def test_a_node_that_goes_on_writing_is_confirmed():
    course = Course()
    for what in [HEAR, *WELL, SURVEY, *WELL]:
        course.step(what)
    assert [one.until for one in course.known.silent_counts(fingerprint(["n"]), course.now + 1)] == [None, None]
    for what in WELL:
        course.step(what)
    [_, found] = course.known.silent_counts(fingerprint(["n"]), course.now + 1)
    assert (found.since, found.until) == (6, 7)


LATE = {
    "it was under way": [SEND, REPORT, SURVEY, ARRIVE, HEAR],
    "it was refused, and the same word written again": [SEND, REPORT, SURVEY, ARRIVE, SEND, ARRIVE, HEAR, HEAR],
}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_a_word_that_was_taken_before_the_survey_is_no_word_of_afterwards(late):
    course = Course()
    for what in [HEAR, *WELL, WRITE, *late]:
        course.step(what)


# -- no majority where half is calm ------------------------------------------------------------------------------------

NAMES = [f"n{number}" for number in range(7)]


@given(
    nodes=st.sets(st.sampled_from(NAMES), min_size=1),
    reporting=st.sets(st.sampled_from(NAMES)),
    me=st.sampled_from(NAMES),
)
def test_where_half_of_the_nodes_are_calm_nobody_agrees(nodes, reporting, me):
    """``me`` says nothing of itself to others; it counts itself all the same, and so is never known to be calm."""
    quiet = {name: word() for name in nodes - reporting - {me}}
    found = count_silent(quiet, len(nodes), None)
    agreed = find_agreement((frozenset(nodes),), dict.fromkeys(reporting, 0.0), me=me, now=1, report=20)
    assert not (found.since is not None and agreed.pets)
    if me in nodes:
        assert (found.since is None) is agreed.pets
