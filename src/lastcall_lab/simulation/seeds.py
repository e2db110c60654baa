"""Repeatable randomness: each user has its own sequence, so that an extra draw does not change the other sequences."""

from random import Random


def random_of(seed: str, who: str) -> Random:
    """The sequence of ``who`` in the run with that seed."""
    return Random(f"{seed}/{who}")  # noqa: S311  (it is to repeat, and protects nothing)
