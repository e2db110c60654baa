"""How far a pod's departure has spread: one row for each rule, and what holds for all facts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.drain.traffic.departure import (
    DepartureFacts,
    DepartureLimits,
    DepartureStage,
    ProxyState,
    assess_departure,
)
from lastcall.model.slice_places import SlicePlace

SLICES, PROXIES, CONNECTIONS, MOVED = DepartureStage
FOLLOWED, LATE, SILENT, LEFT_OUT = ProxyState
LIMITS = DepartureLimits(slices=10, proxies=20, connections=40)
OUT = SlicePlace(proxied=("a",))


def facts(**changes):
    base = DepartureFacts(
        evicted=0,
        place=OUT,
        was_ready=True,
        left=5,
        proxies={"n1": FOLLOWED, "n2": FOLLOWED},
        unasked=0,
        settle=8,
        connections=0,
        gone=None,
    )
    return base._replace(**changes)


READY = {"place": SlicePlace(ready=("a", "custom"), proxied=("a",)), "left": None}
LASTS = {"place": SlicePlace(published=("q",), serving=("p",), proxied=("p", "q")), "left": None}
TABLE = [
    # now, facts, stage, part of why, until, cut short
    (6, {}, MOVED, "its traffic has moved", None, False),
    (6, {"was_ready": False, "left": None, "proxies": {"n1": LATE}}, MOVED, "no Service", None, False),
    (99, READY | {"evicted": None}, SLICES, "not evicted yet", None, False),
    (9, READY, SLICES, "a, custom still name it", 10, False),
    (10, READY, MOVED, "after 10 s", None, True),
    (6, {"proxies": {"n1": FOLLOWED, "n2": LATE}}, PROXIES, "proxies of n2 do not follow", 25, False),
    (25, {"proxies": {"n1": FOLLOWED, "n2": LATE}}, MOVED, "n2 did not follow in 20 s", None, True),
    (6, {"proxies": {"n1": FOLLOWED, "n2": SILENT}}, PROXIES, "n2 do not tell", 13, False),
    (13, {"proxies": {"n1": FOLLOWED, "n2": SILENT}}, MOVED, "has moved", None, False),
    (6, {"proxies": {"n1": FOLLOWED, "n2": LEFT_OUT}}, MOVED, "n2 are not Ready and left out", None, False),
    (6, {"unasked": 4950}, PROXIES, "4950 more nodes are not asked", 13, False),
    (13, {"unasked": 4950}, MOVED, "has moved", None, False),
    (6, {"proxies": {}}, PROXIES, "no node is asked", 13, False),
    (6, {"place": SlicePlace(others=("db-1",))}, PROXIES, "kube-proxy does not follow db-1", 13, False),
    (6, {"balancers": ("g/a", "g/b")}, PROXIES, "the load balancer of g/a, g/b does not tell", 13, False),
    (13, {"balancers": ("g/a",)}, MOVED, "has moved", None, False),
    (6, {"connections": 3}, CONNECTIONS, "3 connections", 45, False),
    (45, {"connections": 3}, MOVED, "3 connections were open after 40 s", None, True),
    (6, {"connections": 3, "gone": 4}, MOVED, "has moved", None, False),
    (6, {"connections": None}, MOVED, "connections are unknown", None, False),
    (6, {"connections": None, "gone": 4}, MOVED, "has moved", None, False),
    (99, LASTS, SLICES, "p, q send it traffic until it is gone", None, False),
    (13, LASTS | {"gone": 4}, SLICES, "p, q still name it though it is gone", 14, False),
    (14, LASTS | {"gone": 4}, MOVED, "though it is gone for 10 s", None, True),
    (6, {"gone": 4, "proxies": {"n1": LATE}}, PROXIES, "n1", 25, False),
    (7, {"place": None, "left": None}, PROXIES, "cannot be read", 8, False),
    (8, {"place": None, "left": None}, MOVED, "cannot be read", None, True),
]


@pytest.mark.parametrize(("now", "changes", "stage", "why", "until", "cut_short"), TABLE)
def test_the_rules(now, changes, stage, why, until, cut_short):
    step = assess_departure(facts(**changes), LIMITS, now)
    assert (step.stage, step.cut_short) == (stage, cut_short), step
    assert why in step.why
    assert step.until == (float("inf") if until is None else until)


any_facts = st.builds(
    DepartureFacts,
    evicted=st.just(0.0),
    place=st.one_of(st.none(), st.builds(SlicePlace, *[st.sampled_from([(), ("a",)])] * 5)),
    was_ready=st.booleans(),
    left=st.one_of(st.none(), st.floats(0, 10)),
    proxies=st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.sampled_from(ProxyState)),
    unasked=st.sampled_from([0, 7]),
    settle=st.floats(0, 30),
    connections=st.one_of(st.none(), st.integers(0, 3)),
    gone=st.one_of(st.none(), st.floats(0, 10)),
)


@given(any_facts, st.floats(0, 100))
def test_every_wait_ends(found, now):
    step = assess_departure(found, LIMITS, now)
    if step.until == float("inf") and step.stage is not MOVED:
        assert found.place.lasting
        assert found.gone is None
        return
    if step.stage is not MOVED:
        assert now < step.until
        assert assess_departure(found, LIMITS, step.until) != step
    assert assess_departure(found, LIMITS, 10 + 40).stage is MOVED


@given(any_facts, st.floats(0, 100))
def test_nothing_has_moved_without_a_proof_or_a_limit(found, now):
    step = assess_departure(found, LIMITS, now)
    if step.stage is MOVED and not step.cut_short and found.was_ready and found.left is not None:
        assert found.place is not None
        assert not found.place.ready
        assert not found.place.lasting
        assert LATE not in found.proxies.values()
        assert SILENT not in found.proxies.values() or now >= found.left + found.settle
        assert found.gone is not None or not found.connections
