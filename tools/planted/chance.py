"""Tries seeds of chaos until one of them breaks a promise: ``python chance.py FIRST LAST``, within the tree on its path.

Prints the seed and the promise, and nothing if none is broken. What breaks off by a mistake counts as found too.
"""

import sys

from lastcall.lab.simulation import chaos
from lastcall.lab.simulation.playing import hush, play


def broken(seed: int) -> str:
    """The first promise that a seed breaks, in words."""
    try:
        outcome = play(chaos.scenario(seed), seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return outcome.violations[0].rule if outcome.violations else ""


def main(first: int, last: int) -> None:
    """Until one is found."""
    hush()
    for seed in range(first, last + 1):
        if why := broken(seed):
            sys.stdout.write(f"{seed} {why}\n")
            return


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
