"""Numbers of nodes that no two labs share."""

import pytest

from lastcall.errors import Unavailable
from lastcall_lab.traffic import node_numbers
from lastcall_lab.traffic.node_numbers import COUNT, NodeNumbers


def test_nobody_has_the_number_of_another():
    one, two = NodeNumbers(), NodeNumbers()
    first = one.take(COUNT - 1)
    other = two.take(first)
    assert {first, other} <= {*range(COUNT)}
    assert first != other
    one.release()
    assert two.take(first) != other, "what the first had is free again"
    two.release()


def test_all_are_taken(monkeypatch):
    monkeypatch.setattr(node_numbers, "COUNT", 0)
    with pytest.raises(Unavailable, match="all 0 numbers of nodes are taken by labs on this machine"):
        NodeNumbers().take(0)
