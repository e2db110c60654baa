"""What a node's own Lease says of its watchdog, and the fact that the controller makes of it."""

import pytest

from lastcall import names
from lastcall.failover.evidence.facts import WatchdogSeen
from lastcall.failover.evidence.watchdog_observation import (
    Reachability,
    WatchdogObservation,
    observe_lease,
    watchdog_evidence,
)
from lastcall.model.leadership import LeaseRecord
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_lease import (
    AgentLease,
    AgentLeaseMeta,
    WatchdogPromise,
    parse_promise,
    renewal_record,
    to_annotations,
)

SETTINGS = WatchdogTiming(lease=40.0, pet=5.0, timeout=12.0, drift=0.02)
ARMED = WatchdogPromise.from_timing("b1", SETTINGS)
TOLD = to_annotations(ARMED)
ALL_WELL = [Reachability(at=0, reachable=4, nodes=5)]


def test_a_promise_is_read_as_it_was_written():
    assert parse_promise(TOLD) == ARMED
    assert ARMED.armed_timing == SETTINGS
    assert AgentLease(metadata=AgentLeaseMeta(annotations=TOLD)).promise == ARMED
    assert (
        TOLD[names.WATCHDOG] == '{"bootID":"b1","armed":true,"leaseSeconds":40.0,"petSeconds":5.0,'
        '"timeoutSeconds":12.0,"drift":0.02}'
    )


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "armed",
        '{"x":' + "[" * 5000 + "]" * 5000 + "}",
        "[]",
        '{"armed":true}',
        '{"bootID":"b1"}',
        '{"bootID":"b1","armed":false,"leaseSeconds":40,"petSeconds":5,"timeoutSeconds":12}',
        '{"bootID":"","armed":true,"leaseSeconds":40,"petSeconds":5,"timeoutSeconds":12}',
        '{"bootID":"b1","armed":true,"leaseSeconds":40,"petSeconds":5}',
        '{"bootID":"b1","armed":true,"leaseSeconds":40,"petSeconds":5,"timeoutSeconds":10}',
        '{"bootID":"b1","armed":"true","leaseSeconds":40,"petSeconds":5,"timeoutSeconds":12}',
        '{"bootID":"b1","armed":true,"leaseSeconds":1e999,"petSeconds":5,"timeoutSeconds":12}',
    ],
)
def test_what_promises_nothing(text):
    """Nothing, what cannot be read, what is not armed, and settings from which no bound follows."""
    found = observe_lease(None, annotations={} if text is None else {names.WATCHDOG: text}, renewed="r1", now=10)
    assert watchdog_evidence(found, read=1000, contacts=ALL_WELL) is None


def test_fields_of_later_versions_are_passed_over():
    assert parse_promise({names.WATCHDOG: '{"bootID":"b1","later":3}'}) == WatchdogPromise(boot_id="b1")


def test_a_renewal_is_never_the_same_text_again():
    first = renewal_record(LeaseRecord(), node="n1", lease=7.5, wall=1_800_000_000)
    again = renewal_record(first, node="n1", lease=7.5, wall=1_800_000_000)
    assert (first.renew_time, first.acquire_time) == ("2027-01-15T08:00:00.000000Z", "2027-01-15T08:00:00.000000Z")
    assert (again.renew_time, again.acquire_time) == ("2027-01-15T08:00:00.000001Z", "2027-01-15T08:00:00.000000Z")
    assert (again.holder_identity, again.lease_duration_seconds) == ("n1", 8)


def test_it_counts_from_when_it_was_seen_first():
    first = observe_lease(None, annotations=TOLD, renewed="r1", now=100)
    assert observe_lease(first, annotations=TOLD, renewed="r1", now=130) is first
    assert observe_lease(first, annotations=TOLD, renewed="r2", now=130).since == 130
    assert (
        observe_lease(first, annotations=to_annotations(WatchdogPromise(boot_id="b1")), renewed="r1", now=130).since
        == 130
    )
    assert observe_lease(first, annotations={}, renewed="", now=130) == WatchdogObservation(
        promise=None, renewed="", since=130
    )


def test_the_fact():
    found = observe_lease(None, annotations=TOLD, renewed="r1", now=100)
    fact = watchdog_evidence(found, read=180, contacts=ALL_WELL)
    assert fact == WatchdogSeen(boot_id="b1", settings=SETTINGS, renewed=100, read=180, reachable=4, nodes=5)


def test_a_look_that_was_asked_for_before_it_was_seen_shows_nothing():
    """A read may be under way while an event tells of a later renewal."""
    assert (
        watchdog_evidence(observe_lease(None, annotations=TOLD, renewed="r1", now=100), read=99, contacts=ALL_WELL)
        is None
    )


@pytest.mark.parametrize(
    ("contacts", "reachable", "nodes"),
    [
        ([], 0, 0),
        ([(101, 5, 5)], 0, 0),  # how it was at first is not known
        ([(100, 5, 5)], 5, 5),
        ([(10, 1, 9), (90, 4, 5)], 4, 5),  # what was before does not count
        ([(90, 4, 5), (120, 2, 5), (130, 5, 5)], 2, 5),  # the fewest at a time
        ([(90, 4, 5), (120, 4, 8), (130, 4, 5)], 4, 8),
        ([(90, 4, 5), (180, 1, 5)], 1, 5),
        ([(90, 4, 5), (181, 1, 5)], 4, 5),  # nor what came afterwards
    ],
)
def test_the_fewest_nodes_that_were_heard_of_at_any_moment(contacts, reachable, nodes):
    told = [Reachability(at=at, reachable=some, nodes=every) for at, some, every in contacts]
    fact = watchdog_evidence(observe_lease(None, annotations=TOLD, renewed="r1", now=100), read=180, contacts=told)
    assert (fact.reachable, fact.nodes) == (reachable, nodes)
