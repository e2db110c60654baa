"""Randomness that repeats: everybody has a sequence of his own, so that one more draw of one changes nobody else's."""

from random import Random


def random_of(seed: str, who: str) -> Random:
    """The sequence of ``who`` in the run with that seed."""
    return Random(f"{seed}/{who}")  # noqa: S311  (it is to repeat, and protects nothing)
