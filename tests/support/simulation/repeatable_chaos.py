"""One seed of a random story that prints everything that happens, for the tests of these.

As a program (``python -m support.simulation.repeatable_chaos SEED [kubelet|drain]``), so that it can be run with another hash seed and another
Python. After every step of the loop, every request and every piece of a watch come the truth and what was measured.
"""

import sys

import msgspec
from support.virtual_time.repeatable_cluster import Told

from lastcall_lab import virtual
from lastcall_lab.simulation import chaos, drain_chaos, kubelet_chaos
from lastcall_lab.simulation.control_plane import SimulatedControlPlane
from lastcall_lab.simulation.outcome_builder import build_outcome
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.runner import silence_loggers


async def play(seed, story):
    reach = SimulatedControlPlane.transport_for
    SimulatedControlPlane.transport_for = lambda plane, user, program: Told(reach(plane, user, program), program)
    rehearsal = Rehearsal(story.generate_scenario(seed), seed)
    await rehearsal.run()
    truth = rehearsal.cluster.truth
    said = [*truth.happenings, *truth.powers, *truth.faults, *rehearsal.cluster.storage.records]
    return virtual.running_loop().trace_digest(), said, build_outcome(rehearsal)


def main():
    silence_loggers()
    story = {"kubelet": kubelet_chaos, "drain": drain_chaos}.get(sys.argv[-1], chaos)
    trace, said, found = virtual.run(play(int(sys.argv[1]), story), steps=True, listen=sys.stdout.write)
    for one in said:
        sys.stdout.write(f"{one}\n")
    sys.stdout.write(f"{msgspec.json.encode(found).decode()}\n")
    sys.stdout.write(f"trace {trace}\n")


if __name__ == "__main__":
    main()
