"""What nodes say of leases on shared storage, as a fact about one boot: tables."""

import msgspec
import pytest
from msgspec.structs import replace

from lastcall import names
from lastcall.failover.controller.cluster_view import ClusterView
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot, PowerSeen
from lastcall.failover.evidence.storage_leases import StorageLeaseReports, StorageReading, storage_evidence
from lastcall.model.observed import ObjectChange, WatchedKind, WatchedLease
from lastcall.model.power import PowerState
from lastcall.model.storage_lease import HostSeen, StorageRecord, to_annotations

BOOT = Boot(id="a", system_uuid="m1", since=0.0)
HELD = StorageRecord(
    boot_id="a", lockspace="demo", host_id=2, generation=5, owner="two", timestamp=100, dead_after_seconds=140.0
)
SEEN = HostSeen(host_id=2, generation=5, owner="two", timestamp=100, renewed_ago=170, looked_ago=22)
"""Of elapsed 148 s less the slack of 1 s."""
DEAD, ALIVE, UNKNOWN = BootState.DEAD, BootState.ALIVE, BootState.UNKNOWN


def reading(*, at=1000.0, reader="n1", interval=20.0, advanced=False, **parts):
    return StorageReading(reader=reader, host=replace(SEEN, **parts), interval=interval, at=at, advanced=advanced)


def verdict(*readings, record=HELD, boot=BOOT, now=1000.0):
    fact = storage_evidence(boot, record, readings)
    return assess(boot, [fact] if fact else [], now).state


ROWS = {
    "not renewed for so long": (DEAD, [reading()]),
    "not quite: clocks differ by a hundredth": (UNKNOWN, [reading(renewed_ago=164)]),
    "just": (DEAD, [reading(renewed_ago=164.5)]),
    "the reader began its look earlier": (UNKNOWN, [reading(looked_ago=32)]),
    "its own storage stands still": (UNKNOWN, [reading(renewed_ago=5000, looked_ago=4900)]),
    "it is told late": (DEAD, [reading(at=1000), reading(reader="n3", at=1000, renewed_ago=3, looked_ago=1)]),
    "another reader has read a later renewal": (
        ALIVE,
        [reading(), reading(reader="n3", timestamp=120, renewed_ago=3, looked_ago=1, interval=0, advanced=True)],
    ),
    "another reader has read a later renewal, and nothing else before": (
        UNKNOWN,
        [reading(), reading(reader="n3", timestamp=120, renewed_ago=3, looked_ago=1, interval=0)],
    ),
    "another reader lags behind": (
        DEAD,
        [reading(), reading(reader="n3", timestamp=80, renewed_ago=3, looked_ago=1, interval=0)],
    ),
    "earlier than the holder has read itself": (UNKNOWN, [reading(timestamp=99)]),
    "another generation": (UNKNOWN, [reading(generation=4)]),
    "another owner": (UNKNOWN, [reading(owner="three")]),
    "another host": (UNKNOWN, [reading(host_id=3)]),
    "nobody reads it": (UNKNOWN, []),
    "two that have not looked long enough make none that has": (
        UNKNOWN,
        [reading(renewed_ago=150, at=900), reading(reader="n3", renewed_ago=150, at=1000)],
    ),
}


@pytest.mark.parametrize(("state", "readings"), ROWS.values(), ids=ROWS)
def test_what_follows(state, readings):
    assert verdict(*readings) is state


RECORDS = {
    "no watchdog": replace(HELD, dead_after_seconds=None),
    "another boot": replace(HELD, boot_id="b"),
    "no lease": StorageRecord(boot_id="a", why="sanlock is away"),
    "a later generation": replace(HELD, generation=6),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_what_the_node_has_to_say_itself(record):
    assert verdict(reading(), record=record) is UNKNOWN


def test_who_begins_to_observe_later_concludes_the_same_and_dates_it_no_earlier():
    late = Boot(id="a", system_uuid="m1", since=990.0)
    assert verdict(reading(renewed_ago=900), boot=late) is ALIVE  # that its Node is seen is a sign of life
    assert verdict(reading(renewed_ago=930, at=1030), boot=late, now=1030.0) is DEAD
    fact = storage_evidence(late, HELD, [reading(renewed_ago=930, at=1030)])
    assert fact.renewed + fact.dead_after > late.since
    assert fact.read <= 1030


def test_a_renewal_that_is_read_late_does_not_call_a_fence_device_a_liar():
    """The machine lost its power at 970; its last renewal, of 969, was read at 988."""
    off = [PowerSeen(boot_id="a", source="bmc", power=PowerState.OFF, asked=at, answered=at) for at in (970.5, 975.0)]
    fact = storage_evidence(BOOT, HELD, [reading(renewed_ago=12, looked_ago=22, at=1000, advanced=True)])
    assert fact.renewed == 988
    assert fact.lived == 887
    assert assess(BOOT, [*off, fact], 1000.0).state is DEAD


def test_a_host_that_has_just_joined_does_not_call_a_fence_device_a_liar():
    """It notes each lease as if it had been renewed then; that machine had been switched off minutes before."""
    off = [PowerSeen(boot_id="a", source="bmc", power=PowerState.OFF, asked=at, answered=at) for at in (600.0, 605.0)]
    fact = storage_evidence(BOOT, HELD, [reading(renewed_ago=2, looked_ago=22, at=1000)])
    assert assess(BOOT, [*off, fact], 1000.0).state is DEAD
    fact = storage_evidence(BOOT, HELD, [reading(renewed_ago=2, looked_ago=22, at=1000, advanced=True)])
    assert assess(BOOT, [*off, fact], 1000.0).state is ALIVE


def test_what_is_said_of_it():
    fact = storage_evidence(BOOT, HELD, [reading()])
    assert (
        "lockspace demo (read by node n1) was not renewed for 2m21.4s: a watchdog has reset it"
        in assess(BOOT, [fact], 1000.0).reasons[0]
    )
    soon = storage_evidence(BOOT, HELD, [reading(renewed_ago=60)])
    waiting = assess(BOOT, [soon], 1000.0)
    assert waiting.awaited[0].what.startswith("that its lease on lockspace demo (read by node n1) is not renewed")
    assert waiting.awaited[0].at == pytest.approx(940 + 141.4)
    assert not any("silence proves nothing" in reason for reason in waiting.reasons)
    assert assess(BOOT, [soon], 1100.0).awaited[0].at is None  # overdue: nobody can say when it is read


# -- of all nodes ------------------------------------------------------------------------------------------------------

READER = StorageRecord(
    boot_id="r", lockspace="demo", host_id=1, generation=1, owner="one", interval_seconds=20.0, seen=(SEEN,)
)


NODES = ("n1", "n2", "n3")


def heard(**said):
    known = StorageLeaseReports()
    for node, record in said.items():
        known.observe_lease(node, to_annotations(record), 1000.0, revision=1)
    return known


def dead(known, node="n2", boot=BOOT):
    fact = known.evidence_about(node, boot, NODES)
    return assess(boot, [fact] if fact else [], 1000.0).state is DEAD


def test_others_tell_of_a_nodes_lease():
    assert dead(heard(n2=HELD, n1=READER))
    assert dead(heard(n1=READER, n2=HELD))


def test_a_lockspace_of_another_name_says_nothing():
    assert not dead(heard(n2=HELD, n1=replace(READER, lockspace="demo2")))
    assert not dead(heard(n2=replace(HELD, lockspace="demo2"), n1=READER))


def test_nobody_tells_of_himself():
    assert not dead(heard(n2=replace(HELD, interval_seconds=20.0, seen=(SEEN,))))


def test_two_that_say_they_hold_one_lease_are_in_two_lockspaces_of_one_name():
    assert not dead(heard(n2=HELD, n1=READER, n3=replace(HELD, boot_id="c", timestamp=5000)))
    assert dead(heard(n2=HELD, n1=READER, n3=replace(HELD, boot_id="c", generation=6)))


def test_what_is_taken_back_is_gone():
    known = heard(n2=HELD, n1=READER)
    known.observe_lease("n2", to_annotations(replace(HELD, dead_after_seconds=None)), 1001.0, revision=1)
    assert not dead(known)
    known = heard(n2=HELD, n1=READER)
    known.observe_lease("n1", to_annotations(replace(READER, seen=())), 1001.0, revision=1)
    assert not dead(known)
    for gone in ("n1", "n2"):
        known = heard(n2=HELD, n1=READER)
        known.forget_node(gone)
        known.forget_node(gone)
        assert not dead(known)


def test_garbage_takes_back_what_was_said():
    known = heard(n2=HELD, n1=READER)
    known.observe_lease("n2", {names.STORAGE_LEASE: '{"bootID": 7}'}, 1001.0, revision=1)
    assert not dead(known)


def test_who_has_no_node_is_not_heard():
    known = heard(n2=HELD, gone=READER)
    assert known.evidence_about("n2", BOOT, NODES) is None
    assert known.evidence_about("n2", BOOT, (*NODES, "gone")) is not None
    assert dead(heard(n2=HELD, n1=READER, gone=replace(HELD, boot_id="c"))), "nor does it hold another's lease"


def test_a_lockspace_that_was_made_anew_under_its_name_proves_nothing():
    """The Lease of a reader that is down is of the storage before; all that tells two leases apart is equal."""
    old = replace(READER, seen=(replace(SEEN, timestamp=82230, renewed_ago=500.0, looked_ago=20.0),))
    known = heard(n2=HELD, n1=old)
    assert dead(known), "nobody reads anything else"
    for number, at in enumerate((1010.0, 1030.0)):
        fresh = replace(READER, seen=(replace(SEEN, timestamp=9000 + 20 * number, renewed_ago=3.0),))
        known.observe_lease("n3", to_annotations(fresh), at, revision=1)
    assert not dead(known)
    known.observe_lease(
        "n1",
        to_annotations(replace(READER, seen=(replace(SEEN, timestamp=9020, renewed_ago=5.0),))),
        1031.0,
        revision=2,
    )
    assert known.evidence_about("n2", BOOT, NODES) is not None, "both read the same storage by now"


def test_storage_that_was_restored_from_an_earlier_state_proves_nothing():
    known = heard(n2=HELD, n1=replace(READER, seen=(replace(SEEN, timestamp=300),)))
    known.observe_lease(
        "n3", to_annotations(replace(READER, seen=(replace(SEEN, timestamp=310, renewed_ago=3.0),))), 1000.0, revision=1
    )
    known.observe_lease(
        "n3", to_annotations(replace(READER, seen=(replace(SEEN, timestamp=200, renewed_ago=3.0),))), 1010.0, revision=2
    )
    assert not dead(known)


def test_a_reader_that_lags_behind_and_tells_nothing_new_hides_no_proof():
    behind = replace(READER, seen=(replace(SEEN, timestamp=100, renewed_ago=3.0),))
    known = heard(n2=HELD, n3=behind, n1=replace(READER, seen=(replace(SEEN, timestamp=120),)))
    known.observe_lease(
        "n3", to_annotations(replace(behind, seen=(replace(behind.seen[0], renewed_ago=13.0),))), 1010.0, revision=2
    )
    assert dead(known)


def test_another_lockspace_of_the_same_reader_is_no_advance_of_the_first():
    known = heard(n2=HELD, n1=replace(READER, seen=(replace(SEEN, timestamp=300),)))
    known.observe_lease(
        "n3", to_annotations(replace(READER, lockspace="other", seen=(replace(SEEN, timestamp=7),))), 1000.0, revision=1
    )
    known.observe_lease(
        "n3", to_annotations(replace(READER, seen=(replace(SEEN, timestamp=200, renewed_ago=3.0),))), 1010.0, revision=2
    )
    assert dead(known), "it lags behind"


@pytest.mark.parametrize("first", [999.0, 1000.0, 1000.0005, 1002.0])
def test_it_is_all_one_whether_the_lease_or_the_node_was_heard_of_first(first):
    boot = Boot(id="a", system_uuid="m1", since=1000.0)
    fact = storage_evidence(boot, HELD, [reading(renewed_ago=930, at=first)])
    assert assess(boot, [fact], 1100.0).state is DEAD


def test_a_renewal_that_a_reader_noted_a_minute_late_does_not_call_a_fence_device_a_liar():
    """It renewed at 999, which was read at 1000 and noted at 1058, as the reader's own write hung; it lost its power at 1004."""
    off = [PowerSeen(boot_id="a", source="bmc", power=PowerState.OFF, asked=at, answered=at) for at in (1005.0, 1007.0)]
    fact = storage_evidence(BOOT, HELD, [reading(renewed_ago=2, looked_ago=80, at=1060, advanced=True)])
    assert assess(BOOT, [*off, fact], 1090.0).state is DEAD


def test_what_is_heard_once_more_is_as_old_as_it_was():
    known = heard(n2=HELD, n1=READER)
    before = known.evidence_about("n2", BOOT, NODES)
    assert known.observe_lease("n1", to_annotations(READER), 9000.0, revision=1) == ()
    assert known.evidence_about("n2", BOOT, NODES) == before


def test_whose_lease_has_become_over_is_told_once():
    known = heard(n2=HELD)
    fresh = replace(READER, seen=(replace(SEEN, renewed_ago=100.0),))
    assert list(known.observe_lease("n1", to_annotations(fresh), 1000.0, revision=1)) == []
    assert list(known.observe_lease("n1", to_annotations(READER), 1010.0, revision=1)) == ["n2"]
    later = replace(READER, seen=(replace(SEEN, renewed_ago=180.0),))
    assert list(known.observe_lease("n1", to_annotations(later), 1020.0, revision=1)) == []


def test_an_older_look_that_arrives_later_says_nothing():
    doubtful = replace(HELD, dead_after_seconds=None)
    known = heard(n2=HELD, n1=READER)
    known.observe_lease("n2", to_annotations(doubtful), 1001.0, revision=9)
    known.observe_lease("n2", to_annotations(HELD), 1001.0, revision=8)
    assert not dead(known)
    known.observe_lease("n2", to_annotations(doubtful), 1002.0, revision=9)
    assert not dead(known)
    known.observe_lease("n2", to_annotations(HELD), 1003.0, revision=10)
    assert dead(known)


def test_nothing_follows_from_a_nodes_word_until_the_newest_is_heard_again():
    known = heard(n2=HELD, n1=READER)
    known.observe_lease("n2", to_annotations(HELD), 1001.0, revision=9)
    before = known.evidence_about("n2", BOOT, NODES)
    known.observe_lease("n2", to_annotations(HELD), 1001.0, revision=8)
    assert known.evidence_about("n2", BOOT, NODES) is None
    known.observe_lease("n2", to_annotations(HELD), 1002.0, revision=9)
    assert known.evidence_about("n2", BOOT, NODES) == before
    known.observe_lease("n2", to_annotations(HELD), 1003.0, revision=8)
    known.forget_node("n2")
    known.observe_lease("n2", to_annotations(HELD), 1004.0, revision=3)
    assert dead(known)


def test_an_older_reading_that_arrives_later_is_not_taken_for_what_the_reader_says_now():
    known = heard(n2=HELD)
    later = replace(READER, seen=(replace(SEEN, timestamp=120, renewed_ago=3.0),))
    known.observe_lease("n1", to_annotations(later), 1000.0, revision=9)
    assert known.observe_lease("n1", to_annotations(READER), 1000.0, revision=8) == ()
    assert not dead(known)


def lease(node, record, revision):
    metadata = {"name": node, "resourceVersion": str(revision), "annotations": to_annotations(record)}
    return msgspec.convert({"metadata": metadata}, WatchedLease)


def test_an_event_that_is_older_than_what_was_asked_for_meanwhile_does_not_bring_a_word_back():
    observing = ClusterView(lambda _: None)
    observing.handle_change(ObjectChange(WatchedKind.WATCHDOGS, "n1", lease("n1", READER, 7)), 1000.0)
    observing.handle_change(ObjectChange(WatchedKind.WATCHDOGS, "n2", lease("n2", HELD, 8)), 1000.0)
    assert dead(observing.storage)
    observing.observe_watchdog("n2", lease("n2", replace(HELD, dead_after_seconds=None), 10), 1001.0)
    observing.handle_change(ObjectChange(WatchedKind.WATCHDOGS, "n2", lease("n2", HELD, 9)), 1001.0)
    assert not dead(observing.storage)
