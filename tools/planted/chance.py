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

from lastcall_lab.simulation import chaos, failover_chaos
from lastcall_lab.simulation.runner import run_rehearsal, same_scenario, silence_loggers
from lastcall_lab.simulation.scenario import Scenario
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.shipped_scenarios import FAILOVER_CHAOS, scenario_text

MOST_SECONDS = 20.0
"""Of CPU time, for a seed that takes one."""


def _give_up(_: int, __: FrameType | None) -> NoReturn:
    raise TimeoutError("it does not come to its end")


def broken(scenario: Scenario, seed: int) -> str:
    """The first promise that a seed breaks, in words; or the mistake by which it breaks off."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        outcome = run_rehearsal(scenario, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcome.violations[0].rule if outcome.violations else ""


def main(arguments: Sequence[str]) -> None:
    """Until one is found."""
    silence_loggers()
    first, last, *files = arguments
    story: Callable[[int], Scenario] = chaos.generate_scenario
    if files and files != [FAILOVER_CHAOS]:
        story = partial(same_scenario, read_scenario(scenario_text(files[0]), files[0]))
    if files == [FAILOVER_CHAOS]:
        story = failover_chaos.generate_scenario
    for seed in range(int(first), int(last) + 1):
        if why := broken(story(seed), seed):
            sys.stdout.write(f"{seed} {why}\n")
            return


if __name__ == "__main__":
    main(sys.argv[1:])
