"""The guard's replicas are replaced, one after the other, while it is asked: how many questions get no answer.

Two replicas in pods of a lab, behind the proxy of one of its nodes, which forwards TCP and follows the EndpointSlices a
second late, as kube-proxy does.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.guard.guard_pods import GuardPods, ReviewLoad

DELAY = "1s"


def measure_roll(directory, *, rate):
    """The figures of ``guard_load`` during one roll, with the manifests' own ``--drain-seconds``."""
    guards = GuardPods(directory, f"--propagation-delay={DELAY}")
    try:
        guards.start()
        with ReviewLoad(guards.reach(), rate=rate) as load:
            guards.roll()
        return load.figures
    finally:
        guards.end()
