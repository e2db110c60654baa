"""What nodes say in their Leases of others that they still hear: which of it is news, and when who was heard."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall import names
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot, PeerHeard
from lastcall.failover.evidence.node_observations import NodeObservations
from lastcall.failover.evidence.peer_reports import PeerReports, adds_evidence, retain_latest
from lastcall.model import watchdog_peer_reports
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedLease, WatchedNode
from lastcall.model.watchdog_peer_reports import MOST, PeerReport

# -- the annotation ----------------------------------------------------------------------------------------------------

NAMES = st.text(min_size=1, max_size=20)
HEARINGS = st.builds(
    PeerReport, boot_id=NAMES, asked=st.integers(0, 2**53), ago=st.floats(0, 60, allow_nan=False, allow_infinity=False)
)


@given(st.dictionaries(NAMES, HEARINGS, max_size=MOST))
def test_what_is_written_is_read(heard):
    assert watchdog_peer_reports.parse_annotation(watchdog_peer_reports.to_annotations(heard, {})) == heard


def test_with_nobody_to_tell_of_what_stands_there_goes():
    assert watchdog_peer_reports.to_annotations({}, {}) == {}
    assert watchdog_peer_reports.to_annotations({}, {names.PEERS_HEARD: "{}"}) == {names.PEERS_HEARD: None}


def test_of_very_many_those_that_were_heard_last_are_told():
    many = {f"n{n:03}": PeerReport(boot_id="b", asked=1, ago=float(n % 200)) for n in range(300)}
    found = watchdog_peer_reports.parse_annotation(watchdog_peer_reports.to_annotations(many, {}))
    assert len(found) == MOST
    assert max(one.ago for one in found.values()) <= MOST
    assert len(watchdog_peer_reports.to_annotations(many, {})[names.PEERS_HEARD]) < 64 * 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no JSON",
        "[]",
        "null",
        "[" * 100_000,
        '{"n2": 1}',
        '{"n2": {"bootID": "b", "asked": 1}}',
        '{"n2": {"bootID": "", "asked": 1, "ago": 1}}',
        '{"n2": {"bootID": "b", "asked": -1, "ago": 1}}',
        '{"n2": {"bootID": "b", "asked": 1, "ago": -0.5}}',
        '{"n2": {"bootID": "b", "asked": 1, "ago": "1"}}',
        '{"n2": {"bootID": "b", "asked": 1, "ago": NaN}}',
        "\udc80",
    ],
)
def test_what_cannot_be_read_says_nothing(text):
    assert watchdog_peer_reports.parse_annotation({names.PEERS_HEARD: text}) == {}
    hearsay = PeerReports()
    hearsay.observe_lease(lease(1, "a", None), 0.0)
    bad = WatchedLease(
        metadata=msgspec.structs.replace(lease(2, "b", None).metadata, annotations={names.PEERS_HEARD: text})
    )
    assert hearsay.observe_lease(bad, 1.0) == []


# -- what is news ------------------------------------------------------------------------------------------------------


def lease(number, renewed, ago, *, peer="n2", node="n1", boot="b1", asked=1):
    heard = {} if ago is None else {node: PeerReport(boot_id=boot, asked=asked, ago=ago)}
    metadata = {
        "name": peer,
        "resourceVersion": str(number),
        "annotations": watchdog_peer_reports.to_annotations(heard, {}),
    }
    return msgspec.convert({"metadata": metadata, "spec": {"renewTime": renewed}}, WatchedLease)


def hears(*looks):
    """What each look at n2's Lease tells: ``(now, lease)``."""
    hearsay = PeerReports()
    return [[(node, fact.at) for node, fact in hearsay.observe_lease(one, now)] for now, one in looks]


def test_a_write_that_was_seen_to_come_counts_from_as_long_before_as_it_says():
    assert hears((100, lease(1, "a", None)), (105, lease(2, "b", 3.0)))[1] == [("n1", 102.0)]


def test_the_first_look_says_nothing_however_young_it_claims_to_be():
    assert hears((100, lease(1, "a", 0.5)), (105, lease(2, "b", 5.5))) == [[], [("n1", 99.5)]]


def test_what_is_read_once_more_says_nothing():
    """By a live read, by the watch that tells of it after that, and by a list."""
    again = lease(2, "b", 1.0)
    assert hears((0, lease(1, "a", None)), (5, again), (30, again), (60, again)) == [[], [("n1", 4.0)], [], []]


def test_what_arrives_after_something_newer_says_nothing_nor_does_the_newer_once_more():
    first, second = lease(2, "b", 1.0), lease(3, "c", 2.0)
    looks = (0, lease(1, "a", None)), (10, second), (30, first), (31, second)
    assert hears(*looks) == [[], [("n1", 8.0)], [], []]


def test_a_change_that_is_no_renewal_says_nothing():
    """Somebody has set a label."""
    assert hears((0, lease(1, "a", None)), (5, lease(2, "b", 1.0)), (60, lease(3, "b", 1.0)))[2] == []


def test_that_a_node_hears_itself_is_no_news():
    assert hears((0, lease(1, "a", None)), (5, lease(2, "b", 1.0, node="n2")))[1] == []


def test_a_lease_that_was_deleted_is_looked_at_for_the_first_time():
    hearsay = PeerReports()
    hearsay.observe_lease(lease(1, "a", None), 0.0)
    hearsay.forget_node("n2")
    assert hearsay.observe_lease(lease(2, "b", 1.0), 5.0) == []


# -- what is kept ------------------------------------------------------------------------------------------------------


def heard(question, at, boot="b1"):
    return PeerHeard(boot_id=boot, peer="n2", question=question, at=at)


@pytest.mark.parametrize(
    ("known", "fact", "more"),
    [
        (None, heard(1, 5), True),
        (heard(1, 5), heard(1, 5), False),
        (heard(1, 5), heard(1, 6), False),
        (heard(1, 5), heard(1, 4), True),
        (heard(1, 5), heard(2, 6), True),
        (heard(1, 5), heard(2, 4), True),
        (heard(2, 5), heard(1, 9), False),
    ],
)
def test_of_one_question_the_earliest_moment_counts_and_of_several_the_last_question(known, fact, more):
    assert adds_evidence(known, fact) is more


def test_of_many_boots_those_that_were_heard_last_and_that_of_the_node():
    facts = {f"b{n}": heard(1, n, f"b{n}") for n in range(9)}
    assert set(retain_latest(facts, "b0")) == {"b0", "b6", "b7", "b8"}
    assert set(retain_latest(facts, "")) == {"b5", "b6", "b7", "b8"}


def test_a_node_that_its_peers_hear_stays_silent():
    seen = NodeObservations("n1", 0.0)
    seen.observe_node(node().now, 0.0)
    quiet = seen.quiet_since
    assert seen.observe_peer_report(heard(1, 50.0))
    assert not seen.observe_peer_report(heard(1, 50.0)), "nothing is new"
    assert not seen.observe_peer_report(heard(1, 49.0)), "nor is it, if it was heard earlier"
    assert (seen.heard, seen.quiet_since) == (None, quiet)
    assert heard(1, 49.0) in seen.all_facts()
    seen.forget_facts()
    assert not any(isinstance(one, PeerHeard) for one in seen.all_facts())


# -- the controller ----------------------------------------------------------------------------------------------------


def node(name="n1", ready="Unknown", boot="b1"):
    status = {"nodeInfo": {"bootID": boot}, "conditions": [{"type": "Ready", "status": ready}]}
    told = {"metadata": {"name": name, "resourceVersion": "1"}, "status": status}
    return ObjectChange(WatchedKind.NODES, name, msgspec.convert(told, WatchedNode))


def says(number, renewed, ago, **rest):
    told = lease(number, renewed, ago, **rest)
    return ObjectChange(WatchedKind.WATCHDOGS, told.metadata.name, told)


class Scene:
    def __init__(self, ready="Unknown"):
        self.touched = []
        self.observing = ClusterView(self.touched.append)
        self.observing.handle_change(node(ready=ready), 0.0)
        self.observing.handle_change(says(10, "a", None), 0.0)
        self.touched.clear()

    def heard(self):
        return [one.at for one in self.observing.tracked_nodes["n1"].seen.all_facts() if isinstance(one, PeerHeard)]


def test_a_node_in_trouble_is_looked_at_when_it_was_heard_and_no_more_often():
    scene = Scene()
    scene.observing.handle_change(says(11, "b", 1.0), 40.0)
    assert scene.touched == ["n1"]
    scene.observing.handle_change(says(12, "c", 6.0), 45.0)
    scene.observing.handle_change(says(13, "a", 7.0, peer="n3"), 46.0)
    scene.observing.handle_change(says(14, "b", 8.0, peer="n3"), 46.5)
    assert scene.touched == ["n1"], "it is the same question"
    assert scene.heard() == [38.5]
    scene.observing.handle_change(says(15, "c", 0.5, asked=2, peer="n3"), 50.0)
    assert scene.touched == ["n1", "n1"]


def test_a_node_that_is_well_is_not_looked_at_for_it():
    scene = Scene(ready="True")
    scene.observing.handle_change(says(11, "b", 1.0), 5.0)
    assert scene.touched == []
    assert scene.heard() == [4.0]


def test_a_live_look_counts_as_one_and_the_event_after_it_as_none():
    scene = Scene()
    scene.observing.observe_watchdog("n2", says(11, "b", 1.0).now, 40.0)
    scene.observing.handle_change(says(11, "b", 1.0), 70.0)
    assert scene.heard() == [39.0]


def test_a_controller_that_begins_believes_only_what_it_sees_coming():
    scene = Scene()
    scene.observing.handle_change(says(11, "b", 1.0, peer="n3"), 40.0)
    assert scene.heard() == []
    scene.observing.handle_change(ObjectChange(WatchedKind.WATCHDOGS, "n3", None), 41.0)
    scene.observing.handle_change(says(13, "c", 1.0, peer="n3"), 50.0)
    assert scene.heard() == []


def test_what_is_said_of_a_node_that_is_not_there_is_passed_over():
    scene = Scene()
    scene.observing.handle_change(says(11, "b", 1.0, node="n7"), 40.0)
    assert (scene.touched, scene.heard()) == ([], [])


def test_a_boot_that_others_hear_before_its_node_shows_it_is_known():
    scene = Scene()
    scene.observing.handle_change(says(11, "b", 1.0, boot="b2"), 40.0)
    seen = scene.observing.tracked_nodes["n1"].seen
    boot = Boot(id="b2", system_uuid="", since=30.0)
    verdict = assess(boot, seen.all_facts(), 42.0)
    assert verdict.state is BootState.ALIVE
    assert verdict.reasons[0] == "node n2 heard it 3s ago"


# -- by chance ---------------------------------------------------------------------------------------------------------


@st.composite
def courses(draw):
    """A node asks now and then, three others write what they have heard, and the controller sees it late, and out of order."""
    asked = sorted(draw(st.lists(st.integers(0, 60), min_size=1, max_size=6, unique=True)))
    looks = []
    writes = sorted(draw(st.lists(st.tuples(st.integers(0, 90), st.sampled_from(["n2", "n3", "n4"])), max_size=14)))
    for number, (at, peer) in enumerate(writes, 1):
        known = [when for when in asked if when <= at and (when + ord(peer[1])) % 3]
        ago = at - known[-1] if known else None
        told = lease(number, f"{at}/{number}", ago, peer=peer, asked=known[-1] if known else 0)
        delays = draw(st.lists(st.integers(0, 40), min_size=1, max_size=3))
        looks += [(at + delay, told) for delay in delays]
    return asked, sorted(looks, key=lambda look: look[0])


@given(courses())
def test_no_order_of_writes_delays_and_repetitions_makes_a_sign_of_what_was_known(course):
    """A sign is never earlier than the question that was heard, never later than now, and only a later question moves it on."""
    asked, looks = course
    hearsay, seen = PeerReports(), NodeObservations("n1", 0.0)
    known = None
    for now, told in looks:
        for _, fact in hearsay.observe_lease(told, float(now)):
            new = seen.observe_peer_report(fact)
            assert fact.question <= fact.at <= now
            assert fact.question in asked
            [best] = [one for one in seen.all_facts() if isinstance(one, PeerHeard)]
            assert new == (known is None or best.question > known.question)
            assert new or (best.question == known.question and best.at <= known.at)
            known = best
