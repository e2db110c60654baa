"""Numbers of nodes that no two labs share."""

import pytest

from lastcall.errors import Unavailable
from lastcall.lab.traffic import numbers
from lastcall.lab.traffic.numbers import COUNT, Numbers


def test_nobody_has_the_number_of_another():
    one, two = Numbers(), Numbers()
    first = one.take(COUNT - 1)
    other = two.take(first)
    assert {first, other} <= {*range(COUNT)}
    assert first != other
    one.release()
    assert two.take(first) != other, "what the first had is free again"
    two.release()


def test_all_are_taken(monkeypatch):
    monkeypatch.setattr(numbers, "COUNT", 0)
    with pytest.raises(Unavailable, match="all 0 numbers of nodes are taken by labs on this machine"):
        Numbers().take(0)
