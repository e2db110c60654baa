"""What holds whatever is known of a boot."""

from dataclasses import replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import (
    Boot,
    DeathAcknowledged,
    InstanceSeen,
    LeaseSeen,
    NodeSeen,
    PeerHeard,
    PowerSeen,
    RebootOrdered,
    ShutdownAnnounced,
    StorageLease,
    WatchdogSeen,
)
from lastcall.model.power import InstanceState, PowerState
from lastcall.model.watchdog import WatchdogTiming

TIMES = st.integers(-5, 60).map(float) | st.sampled_from([0.0, 10.0, 19.5, 20.0, 20.5])
SINCE = {"a": 0.0, "b": 25.0}
IDS = st.sampled_from(["a", "a", "a", "b"])
UUIDS = st.sampled_from(["m1", "m1", "m2", ""])
SOURCES = st.sampled_from(["bmc", "pdu"])
STALE = 85.0
"""So late that no sign of life is fresh any more."""
SETTINGS = WatchdogTiming(lease=5, pet=1, timeout=3, drift=0)
BOOTS = st.builds(lambda name: Boot(id=name, system_uuid="m1", since=SINCE[name]), IDS)
NOW = st.integers(60, 80).map(float) | st.just(STALE)


def make(kind, **parts):
    return st.builds(kind, boot_id=IDS, **parts)


def told(kind, *, boot_id=IDS, asked=TIMES, **parts):
    """A device takes its time."""
    took = st.sampled_from([0.0, 0.0, 1.5])
    at = st.tuples(asked, took).map(lambda both: {"asked": both[0], "answered": both[0] + both[1]})
    return st.builds(lambda when, **rest: kind(**when, **rest), at, boot_id=boot_id, **parts)


ALIVE = st.one_of(
    make(NodeSeen, system_uuid=UUIDS, ready=st.sampled_from(["True", "False"]), at=TIMES),
    make(LeaseSeen, at=TIMES),
    make(PeerHeard, peer=st.just("n2"), question=st.just(1), at=TIMES),
    told(PowerSeen, source=SOURCES, power=st.just(PowerState.ON)),
    told(InstanceSeen, source=st.just("ec2"), state=st.just(InstanceState.RUNNING)),
    make(StorageLease, source=st.just("lun"), renewed=TIMES, read=TIMES),
    make(ShutdownAnnounced, written=TIMES, deadline=TIMES, cancelled=st.booleans(), new=st.booleans()),
)
NOTHING = st.one_of(
    make(NodeSeen, system_uuid=UUIDS, ready=st.just("Unknown"), at=TIMES).map(lambda one: replace(one, boot_id="a")),
    told(PowerSeen, source=SOURCES, power=st.just(PowerState.UNKNOWN)),
    told(InstanceSeen, source=st.just("ec2"), state=st.just(InstanceState.NOT_FOUND)),
    make(RebootOrdered, by=SOURCES, at=TIMES),
)
OFF = st.one_of(
    told(PowerSeen, source=SOURCES, power=st.just(PowerState.OFF)),
    told(InstanceSeen, source=st.just("ec2"), state=st.just(InstanceState.STOPPED)),
    make(DeathAcknowledged, how=st.just("a taint"), at=TIMES),
    make(StorageLease, source=st.just("lun"), renewed=TIMES, read=TIMES, dead_after=st.just(10.0)),
    make(
        WatchdogSeen,
        settings=st.just(SETTINGS),
        renewed=TIMES,
        read=TIMES,
        reachable=st.integers(0, 3),
        nodes=st.just(3),
    ),
)
MOMENTS = st.integers(1, 60).map(float)
STORY = st.lists(  # of one fence device and one Lease, so that the facts meet
    told(PowerSeen, boot_id=st.just("a"), source=st.just("bmc"), power=st.sampled_from(PowerState), asked=MOMENTS)
    | st.builds(LeaseSeen, boot_id=st.just("a"), at=MOMENTS),
    min_size=3,
    max_size=6,
)
EVIDENCE = st.lists(st.one_of(OFF, OFF, ALIVE, NOTHING), max_size=7)


@settings(max_examples=300)
@given(BOOTS, EVIDENCE | STORY, ALIVE, NOW)
def test_a_sign_of_life_never_makes_dead(boot, facts, sign, now):
    """Of this boot: a sign of another boot can end this one."""
    before = assess(boot, facts, now).state
    after = assess(boot, [*facts, replace(sign, boot_id=boot.id)], now).state
    assert before is BootState.DEAD or after is not BootState.DEAD


@settings(max_examples=300)
@given(BOOTS, EVIDENCE | STORY, NOW)
def test_what_is_left_out_never_makes_dead_of_unknown(boot, facts, now):
    """Whichever of the facts are left out."""
    if assess(boot, facts, now).state is BootState.UNKNOWN:
        parts = (part for size in range(len(facts)) for part in combinations(facts, size))
        assert [part for part in parts if assess(boot, part, now).state is BootState.DEAD] == []


@given(EVIDENCE, NOW)
def test_what_ends_one_boot_says_nothing_of_the_other(facts, now):
    """Whatever is known of the first, the second is judged as if it were not, but that both have been seen."""
    boot = Boot(id="b", system_uuid="m1", since=25.0)
    relevant = [one for one in facts if one.boot_id == "b" or isinstance(one, NodeSeen)]
    assert assess(boot, facts, now) == assess(boot, relevant, now)


@given(st.lists(st.one_of(ALIVE, NOTHING), max_size=7), st.floats(0, 1e9))
def test_silence_of_any_length_never_makes_dead(facts, longer):
    boot = Boot(id="a", system_uuid="m1", since=0.0)
    own = [replace(one, boot_id="a") for one in facts]
    assert assess(boot, own, 60.0 + longer).state is not BootState.DEAD


@given(EVIDENCE, st.floats(0, 1e9))
def test_time_alone_ends_nothing_that_is_unknown(facts, longer):
    boot = Boot(id="a", system_uuid="m1", since=0.0)
    before = assess(boot, facts, 60.0).state
    assert before is not BootState.UNKNOWN or assess(boot, facts, 60.0 + longer).state is BootState.UNKNOWN


@given(BOOTS, EVIDENCE, NOW, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_matters(boot, facts, now, random):
    shuffled = random.sample(facts * 2, len(facts) * 2)
    assert assess(boot, shuffled, now) == assess(boot, facts, now)


@given(BOOTS, EVIDENCE, NOW)
def test_who_is_not_dead_is_told_why_and_what_is_awaited(boot, facts, now):
    verdict = assess(boot, facts, now)
    assert verdict.reasons
    assert bool(verdict.awaited) is (verdict.state is not BootState.DEAD)
