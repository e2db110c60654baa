"""Python's garbage collector, for programs that make many objects and keep most of them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (200_000, 20, 50)
"""New objects until the youngest are looked through, and how many such looks until the older ones are."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """The collector looks seldom within: else it goes through all of a large cluster again and again, for nothing.

    What is there already is not looked at.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
