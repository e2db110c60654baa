"""One seed of the chaos that prints everything that happens, for ``test_simulation_chaos``.

As a program (``python -m support.repeatable_chaos SEED``), so that it can be run with another hash seed and another
Python. After every step of the loop, every request and every piece of a watch come the truth and what was measured.
"""

import sys

import msgspec

from lastcall.lab import virtual
from lastcall.lab.simulation import chaos
from lastcall.lab.simulation.measure import outcome
from lastcall.lab.simulation.plane import Plane
from lastcall.lab.simulation.playing import hush
from lastcall.lab.simulation.rehearsal import Rehearsal
from support.repeatable import Told


async def play(seed):
    reach = Plane.reach
    Plane.reach = lambda plane, user, program: Told(reach(plane, user, program), program)
    rehearsal = Rehearsal(chaos.scenario(seed), seed)
    await rehearsal.run()
    truth = rehearsal.cluster.truth
    said = [*truth.happenings, *truth.powers, *truth.faults, *rehearsal.cluster.storage.records]
    return virtual.this_loop().trace(), said, outcome(rehearsal)


def main():
    hush()
    trace, said, found = virtual.run(play(int(sys.argv[1])), steps=True, listen=sys.stdout.write)
    for one in said:
        sys.stdout.write(f"{one}\n")
    sys.stdout.write(f"{msgspec.json.encode(found).decode()}\n")
    sys.stdout.write(f"trace {trace}\n")


if __name__ == "__main__":
    main()
