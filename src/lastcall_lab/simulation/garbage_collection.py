"""Python's garbage collector, for programs that make many objects and keep most of them."""

import functools
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

    It begins with a look at everything, so that the looks within come at the same moments in every run.
    """
    before = gc.get_threshold()
    if before == _SELDOM:
        yield
        return
    _freeze_program_objects()
    _exempted.clear()
    gc.collect()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if _exempted:
            gc.unfreeze()
            _freeze_program_objects.cache_clear()


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


@functools.cache
def _freeze_program_objects() -> None:
    """Once in a process: modules, classes and functions stay until its end, and need not be looked at again."""
    gc.collect()
    gc.freeze()
