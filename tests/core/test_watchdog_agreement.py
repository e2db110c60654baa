"""Whether enough nodes have lost the API server: tables."""

import pytest

from lastcall.watchdog.agreement import agree
from lastcall.watchdog.petting import Standing, accepted, lost, may_pet, sending

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
    assert agree(counted, reports, me="a", now=100, report=20).pets is pets


@pytest.mark.parametrize(
    ("reports", "reason"),
    [
        ({"b": 95}, "only 2 of all 5 nodes report that the API server is lost to them, which is no majority"),
        ({"b": 95, "c": 95}, "3 of all 5 nodes report that the API server is lost to them"),
    ],
)
def test_the_reason_is_told(reports, reason):
    assert agree((ABCDE,), reports, me="a", now=100, report=20).reason == reason


def test_what_the_lease_may_say_of_others():
    """A write that was sent and not answered may have been seen; a new life does not know what an earlier one has said."""
    at = Standing()
    assert at.counted == (None,)
    at = accepted(sending(at, armed=False), armed=False, sent=1)
    at = sending(at, armed=True, nodes=ABC)
    assert at.counted == (None, ABC)
    at = accepted(at, armed=True, sent=2, nodes=ABC)
    assert at.counted == (ABC,)
    assert sending(at, armed=True, nodes=ABC) == at
    at = sending(at, armed=True, nodes=ABCDE)
    assert at.counted == (ABC, ABCDE)
    assert sending(at, armed=True).counted == (ABC, ABCDE, None)
    assert accepted(at, armed=True, sent=3, nodes=ABCDE).counted == (ABCDE,)


@pytest.mark.parametrize(
    ("standing", "is_lost"),
    [
        (Standing(renewed=80, counted=(ABC,)), True),
        (Standing(renewed=80.1, counted=(ABC,)), False),
        (Standing(renewed=80, counted=(ABC, ABCDE)), True),
        (Standing(renewed=80, counted=(ABC, None)), False),  # it may not have said that it takes part
        (Standing(renewed=80, counted=(ABC,), promised=False), False),  # it does not renew
        (Standing(), False),
    ],
)
def test_when_the_api_server_is_lost_to_a_node(standing, is_lost):
    assert lost(standing, report=20, now=100) is is_lost


def test_an_agreement_is_as_good_as_a_renewal():
    over = Standing(renewed=0, counted=(ABC,))
    assert not may_pet(over, lease=20, now=100)
    assert may_pet(over, lease=20, now=100, agreed=True)
