"""Within a rehearsal the garbage collector looks seldom, and afterwards as often as before."""

import gc
import weakref

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


def test_what_was_there_before_is_not_looked_at_within():
    kept = [[] for _ in range(1000)]
    with collect_rarely():
        assert not looked_at(kept)


class Knot:
    """Garbage that only the collector finds."""

    def __init__(self):
        self.itself = self


@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
def test_garbage_is_removed_before_a_run_also_where_one_follows_the_other(old):
    with collect_rarely():
        pass
    gc.disable()
    try:
        gone = weakref.ref(Knot())
        kept = Knot()
        if old:
            gc.collect(1)
            gone, kept = weakref.ref(kept), None
        assert gone()
        with collect_rarely():
            assert gone() is None
    finally:
        gc.enable()


def looked_at(objects):
    """Those that a look at everything goes through."""
    there = {id(one) for one in gc.get_objects()}
    return [one for one in objects if id(one) in there]
