"""Tries seeds of chaos until one of them breaks a promise: ``python chance.py FIRST LAST``, within the tree on its path.

Prints the seed and the promise, and nothing if none is broken. What breaks off by a mistake, or does not come to an end,
counts as found too.
"""

import signal
import sys
from types import FrameType
from typing import NoReturn

from lastcall.lab.simulation import chaos
from lastcall.lab.simulation.playing import hush, play

MOST_SECONDS = 60.0
"""Of CPU time, for a seed that takes one."""


def _give_up(_: int, __: FrameType | None) -> NoReturn:
    raise TimeoutError("it does not come to its end")


def broken(seed: int) -> str:
    """The first promise that a seed breaks, in words."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        outcome = play(chaos.scenario(seed), seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
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
