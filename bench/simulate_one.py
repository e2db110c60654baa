"""One rehearsal of a fleet in virtual time, in a process of its own; its figures as a line of JSON.

``python bench/simulate_one.py NODES AT_ONCE SECONDS``; progress goes to standard error.
"""

import asyncio
import json
import resource
import sys
import time

from lastcall_lab import virtual
from lastcall_lab.simulation.fleet import fleet_scenario
from lastcall_lab.simulation.garbage_collection import collect_rarely
from lastcall_lab.simulation.rehearsal import Rehearsal

STEP = 300.0
"""Virtual seconds between two words of progress."""


async def play(nodes, at_once, seconds):
    begun = time.perf_counter()
    rehearsal = Rehearsal(fleet_scenario(nodes, at_once=at_once, lasts=seconds), 1)
    run = asyncio.create_task(rehearsal.run())
    ready = None
    while not run.done():
        await rehearsal.clock.sleep(1.0 if ready is None else STEP)
        if ready is None and rehearsal.start:
            ready = time.perf_counter() - begun
        if ready is not None:
            tell(rehearsal, nodes, begun)
    await run
    wall, memory = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    return {"nodes": nodes, "wall": wall, "ready": ready or wall, "memory": memory, "rebooted": rebooted(rehearsal)}


def rebooted(rehearsal):
    """How many machines have been off."""
    return sum(power.what == "off" for power in rehearsal.cluster.truth.powers)


def tell(rehearsal, nodes, begun):
    at, wall = rehearsal.clock.boottime() - rehearsal.start, time.perf_counter() - begun
    print(
        f"  {nodes} nodes, {at / 60:.0f} min: {wall:.0f} s, {rebooted(rehearsal)} machines were off",
        file=sys.stderr,
        flush=True,
    )


if __name__ == "__main__":
    with collect_rarely():  # from the first object to the last: its end takes a cluster apart
        figures = virtual.run(play(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
    print(json.dumps(figures))
