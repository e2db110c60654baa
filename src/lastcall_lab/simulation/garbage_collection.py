"""Python's garbage collector, for programs that make many objects and keep most of them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (200_000, 20, 50)
"""New objects until the youngest are looked through, and how many such looks until the older ones are."""


_exempted: list[bool] = []
"""Not empty if something was exempted: to count what is (``gc.get_freeze_count``) takes ten milliseconds."""


@contextmanager
def collect_rarely() -> Iterator[None]:
    """The collector looks seldom within: else it goes through all of a large cluster again and again, for nothing.

    What is there already is not looked at within, nor ever after, and the looks within come at the same moments in every
    run.
    """
    before = gc.get_threshold()
    if before == _SELDOM:
        yield
        return
    _freeze_present_objects()
    _exempted.clear()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if _exempted:
            gc.unfreeze()
            _promotions.clear()


@contextmanager
def exempt_from_collection() -> Iterator[None]:
    """What is made within is not looked at until ``collect_rarely`` ends, as a large cluster that is there already.

    To look once through all of it takes seconds, and finds nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()
        _exempted.append(True)


_promotions: list[int] = []
"""How often objects had grown old when the last run began. Empty before the first run, and after ``gc.unfreeze``."""


def _freeze_present_objects() -> None:
    """Modules, classes, and what other runs have left: they stay, and need not be looked at again.

    First what is garbage is removed. Between runs of which one follows the other nothing grows old, and all garbage is
    young: to look through all that is old as well would take a tenth of a short run.
    """
    young = [_count_promotions()] == _promotions
    gc.collect(1 if young else 2)
    gc.freeze()
    gc.collect()  # there is nothing left to look at: it sets the counters back
    _promotions[:] = [_count_promotions()]


def _count_promotions() -> int:
    """How many looks so far have moved objects to the oldest generation."""
    return sum(one["collections"] for one in gc.get_stats()[1:])
