"""Within a rehearsal the garbage collector looks seldom, and afterwards as often as before."""

import gc

import pytest

from lastcall_lab.simulation.garbage_collection import collect_rarely, exempt_from_collection


@pytest.fixture(autouse=True)
def usual_thresholds():
    """Python's own."""
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_it_looks_seldom_within_and_as_often_as_before_afterwards():
    before = gc.get_threshold()
    with collect_rarely():
        assert gc.get_threshold()[0] > 100 * before[0]
    assert gc.get_threshold() == before


def test_an_inner_one_ends_nothing():
    before = gc.get_threshold()
    with collect_rarely():
        seldom = gc.get_threshold()
        with collect_rarely():
            assert gc.get_threshold() == seldom
        assert gc.get_threshold() == seldom
    assert gc.get_threshold() == before


def test_a_failure_ends_it_too():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="no"), collect_rarely():
        raise ValueError("no")
    assert gc.get_threshold() == before


def test_what_is_made_to_stay_is_not_looked_at_until_the_end():
    kept = []
    with collect_rarely():
        with exempt_from_collection():
            assert not gc.isenabled()
            kept.extend([] for _ in range(1000))
        assert gc.isenabled()
        assert not looked_at(kept)
    assert looked_at(kept)


def looked_at(objects):
    """Those that a look at everything goes through."""
    there = {id(one) for one in gc.get_objects()}
    return [one for one in objects if id(one) in there]
