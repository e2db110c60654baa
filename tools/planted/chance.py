"""Tries seeds until one of them breaks a promise, within the tree on its path.

    python chance.py FIRST LAST [SCENARIO.yaml | failover-chaos]

Plays chaos, failover-chaos, or a scenario from a file. Prints the seed and the promise, and nothing if none is broken. What breaks off by
a mistake, or does not come to an end, counts as found too.
"""

import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import NoReturn

from lastcall.lab.simulation import chaos, failover_chaos
from lastcall.lab.simulation.playing import always, hush, play
from lastcall.lab.simulation.scenario import Scenario
from lastcall.lab.simulation.shipped import FAILOVER_CHAOS, data_of
from lastcall.lab.simulation.wording.reading import read

MOST_SECONDS = 20.0
"""Of CPU time, for a seed that takes one."""


def _give_up(_: int, __: FrameType | None) -> NoReturn:
    raise TimeoutError("it does not come to its end")


def broken(scenario: Scenario, seed: int) -> str:
    """The first promise that a seed breaks, in words; or the mistake by which it breaks off."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        outcome = play(scenario, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcome.violations[0].rule if outcome.violations else ""


def main(arguments: Sequence[str]) -> None:
    """Until one is found."""
    hush()
    first, last, *files = arguments
    story: Callable[[int], Scenario] = chaos.scenario
    if files and files != [FAILOVER_CHAOS]:
        story = partial(always, read(data_of(files[0]), files[0]))
    if files == [FAILOVER_CHAOS]:
        story = failover_chaos.scenario
    for seed in range(int(first), int(last) + 1):
        if why := broken(story(seed), seed):
            sys.stdout.write(f"{seed} {why}\n")
            return


if __name__ == "__main__":
    main(sys.argv[1:])
