"""Plays a scenario with one seed after the other until one of them breaks a promise.

    python tools/play_seeds.py SCENARIO SEEDS

Plays the seeds 1 to SEEDS of ``chaos``, ``failover-chaos``, ``kubelet-chaos``, ``drain-chaos``, or of a scenario that is a file or has the name of one that
lastcall ships. Prints the seed and the promise, or nothing if no promise is broken. An exception, and a seed that does
not end, count as broken promises too. The packages come from PYTHONPATH.
"""

import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import FrameType
from typing import NoReturn

from lastcall_lab.simulation import chaos, drain_chaos, failover_chaos, kubelet_chaos
from lastcall_lab.simulation.runner import run_rehearsal, same_scenario, silence_loggers
from lastcall_lab.simulation.scenario import Scenario
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.shipped_scenarios import CHAOS, DRAIN_CHAOS, FAILOVER_CHAOS, KUBELET_CHAOS, scenario_text

MOST_SECONDS = 20.0
"""CPU time after which a seed counts as one that does not end; most take one second."""

GENERATORS = {
    CHAOS: chaos.generate_scenario,
    FAILOVER_CHAOS: failover_chaos.generate_scenario,
    KUBELET_CHAOS: kubelet_chaos.generate_scenario,
    DRAIN_CHAOS: drain_chaos.generate_scenario,
}


def stop_seed(_: int, __: FrameType | None) -> NoReturn:
    """Ends the seed that is played."""
    raise TimeoutError("the seed does not end")


def broken_promise(scenario: Scenario, seed: int) -> str:
    """The first promise that the seed breaks, or the exception that ended it; empty if all went well."""
    signal.signal(signal.SIGPROF, stop_seed)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        outcome = run_rehearsal(scenario, seed)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return outcome.violations[0].rule if outcome.violations else ""


def scenario_of(name: str) -> Callable[[int], Scenario]:
    """What makes the scenario of a seed."""
    if name in GENERATORS:
        return GENERATORS[name]
    return partial(same_scenario, read_scenario(scenario_text(name), name))


def main(arguments: Sequence[str]) -> None:
    """Plays the seeds."""
    silence_loggers()
    name, seeds = arguments
    scenario = scenario_of(name)
    for seed in range(1, int(seeds) + 1):
        if promise := broken_promise(scenario(seed), seed):
            sys.stdout.write(f"{seed} {promise}\n")
            return


if __name__ == "__main__":
    main(sys.argv[1:])
