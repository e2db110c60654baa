"""Whether enough nodes have lost the API server: tables."""

import pytest

from lastcall.watchdog.agreement import find_agreement
from lastcall.watchdog.pet_rules import LeaseState, is_api_lost, may_pet, state_after_write, state_before_write

ABC, ABCDE = frozenset("abc"), frozenset("abcde")

ROWS = {
    # counted, reports, pets
    "nobody else": ((ABC,), {}, False),
    "one of three more": ((ABC,), {"b": 95}, True),
    "half is no majority": ((frozenset("abcd"),), {"b": 95}, False),
    "more than half of four": ((frozenset("abcd"),), {"b": 95, "d": 95}, True),
    "too old": ((ABC,), {"b": 80}, False),
    "just fresh": ((ABC,), {"b": 80.1}, True),
    "asked later than now": ((ABC,), {"b": 101}, False),
    "of another cluster": ((ABC,), {"x": 95, "y": 95}, False),
    "my own word counts once": ((ABC,), {"a": 95}, False),
    "a node by itself": ((frozenset("a"),), {}, True),
    "a majority of each": ((ABC, ABCDE), {"b": 95, "c": 95}, True),
    "a majority of one of them": ((ABC, ABCDE), {"b": 95}, False),
    "it may say that others do not count": ((ABC, None), {"b": 95, "c": 95}, False),
    "others do not count": ((None,), {"b": 95, "c": 95}, False),
    "nothing": ((), {"b": 95, "c": 95}, False),
    "I am none of them": ((frozenset("bcd"),), {"b": 95}, False),
    "nobody is counted": ((frozenset(),), {}, False),
}


@pytest.mark.parametrize(("counted", "reports", "pets"), ROWS.values(), ids=ROWS)
def test_a_strict_majority_of_all_nodes(counted, reports, pets):
    assert find_agreement(counted, reports, me="a", now=100, report=20).pets is pets


@pytest.mark.parametrize(
    ("reports", "reason"),
    [
        ({"b": 95}, "only 2 of all 5 nodes report that they have lost the API server, which is no majority"),
        ({"b": 95, "c": 95}, "3 of all 5 nodes report that they have lost the API server"),
    ],
)
def test_the_reason_is_told(reports, reason):
    assert find_agreement((ABCDE,), reports, me="a", now=100, report=20).reason == reason


def test_what_the_lease_may_say_of_others():
    """A write that was sent and not answered may have been seen; a new life does not know what an earlier one has said."""
    at = LeaseState()
    assert at.counted == (None,)
    at = state_after_write(state_before_write(at, armed=False), armed=False, sent=1)
    at = state_before_write(at, armed=True, nodes=ABC)
    assert at.counted == (None, ABC)
    at = state_after_write(at, armed=True, sent=2, nodes=ABC)
    assert at.counted == (ABC,)
    assert state_before_write(at, armed=True, nodes=ABC) == at
    at = state_before_write(at, armed=True, nodes=ABCDE)
    assert at.counted == (ABC, ABCDE)
    assert state_before_write(at, armed=True).counted == (ABC, ABCDE, None)
    assert state_after_write(at, armed=True, sent=3, nodes=ABCDE).counted == (ABCDE,)


@pytest.mark.parametrize(
    ("standing", "is_lost"),
    [
        (LeaseState(renewed=80, counted=(ABC,)), True),
        (LeaseState(renewed=80.1, counted=(ABC,)), False),
        (LeaseState(renewed=80, counted=(ABC, ABCDE)), True),
        (LeaseState(renewed=80, counted=(ABC, None)), False),  # it may not have said that it takes part
        (LeaseState(renewed=80, counted=(ABC,), promised=False), False),  # it does not renew
        (LeaseState(), False),
    ],
)
def test_when_the_api_server_is_lost_to_a_node(standing, is_lost):
    assert is_api_lost(standing, report=20, now=100) is is_lost


def test_an_agreement_is_as_good_as_a_renewal():
    over = LeaseState(renewed=0, counted=(ABC,))
    assert not may_pet(over, lease=20, now=100)
    assert may_pet(over, lease=20, now=100, agreed=True)
