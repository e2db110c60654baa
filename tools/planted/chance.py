"""Tries seeds until one of them breaks a promise, within the tree on its path.

    python chance.py FIRST LAST [SCENARIO.yaml | failover-chaos] [--shrink]

Plays chaos, failover-chaos, or a scenario from a file. Prints the seed and the promise, and nothing if none is broken. What breaks off by
a mistake, or does not come to an end, counts as found too. ``--shrink`` adds a line: the shortest scenario that shows it.
"""

import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import NoReturn

from lastcall.adapters.clock import SystemClock
from lastcall.errors import LastcallError
from lastcall.lab.simulation import chaos, failover_chaos
from lastcall.lab.simulation.playing import always, hush, play
from lastcall.lab.simulation.scenario import Scenario, Workload
from lastcall.lab.simulation.shipped import FAILOVER_CHAOS, data_of
from lastcall.lab.simulation.shrink import Shows, shows, shrink
from lastcall.lab.simulation.wording.reading import read
from lastcall.lab.simulation.wording.sentences import of_event

MOST_SECONDS = 20.0
"""Of CPU time, for a seed that takes one."""

SHRINK_RUNS = 80
SHRINK_SECONDS = 90.0
"""Bounds of one search for the shortest scenario; the seconds are of CPU time, so that a busy machine finds no longer one."""


class _Effort(SystemClock):
    """What this process has spent, as time."""

    def boottime(self) -> float:
        """Seconds of CPU."""
        return time.process_time()


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


def breaks_off(why: str, seed: int) -> Shows:
    """Whether a scenario breaks off by that mistake."""
    return lambda scenario: 0.0 if broken(scenario, seed) == why else None


def shortest(scenario: Scenario, seed: int, why: str) -> str:
    """The shortest scenario that shows the same, in a line."""
    try:
        play(scenario, seed)
    except Exception:
        when = breaks_off(why, seed)
    else:
        when = shows(why, seed)
    try:
        return told(shrink(scenario, when, clock=_Effort(), most=SHRINK_RUNS, seconds=SHRINK_SECONDS))
    except LastcallError as error:
        return str(error)


def told(scenario: Scenario) -> str:
    """Machines, workloads and what happens when."""
    machines = sum(group.count for group in scenario.nodes)
    begin = ", ".join([f"{machines} machine{'s' if machines > 1 else ''}", *map(_workload, scenario.workloads)])
    return "; ".join([begin, *(f"{event.at:g} s: {of_event(event)}" for event in scenario.timeline)])


def _workload(one: Workload) -> str:
    """Its kind, and how many there are where that is said."""
    kind = one.kind.value
    return kind if kind == "DaemonSet" else f"{kind} of {one.replicas}{' with a volume each' if one.volume else ''}"


def main(arguments: Sequence[str]) -> None:
    """Until one is found."""
    hush()
    first, last, *files = [one for one in arguments if one != "--shrink"]
    story: Callable[[int], Scenario] = chaos.scenario
    if files and files != [FAILOVER_CHAOS]:
        story = partial(always, read(data_of(files[0]), files[0]))
    if files == [FAILOVER_CHAOS]:
        story = failover_chaos.scenario
    for seed in range(int(first), int(last) + 1):
        if why := broken(story(seed), seed):
            sys.stdout.write(f"{seed} {why}\n")
            if "--shrink" in arguments:
                sys.stdout.write(f"{shortest(story(seed), seed, why)}\n")
            return


if __name__ == "__main__":
    main(sys.argv[1:])
