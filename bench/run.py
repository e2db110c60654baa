"""The bench: measures lastcall beside the floor of its runtime, and prints each target as met or missed.

``make bench``, or ``python bench/run.py [--quick] [--pairs N] [PART ...]``. Parts that this machine cannot run are
told with the reason. The table is Markdown on standard output, the progress goes to standard error; the exit code is 0
also when a target is missed: a figure that fails a build on a busy machine would soon be set higher.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

import beside
import beside_table
import chaos
import drain
import failover
import guard
import guard_backoff
import guard_chaos
import guard_states
import lab
import latency
import machine
import mutants
import rest
import roll
import simulate
import traffic
from figures import HEAD, table
from nodes import ContainerNode, ProcessNode

from lastcall_lab import containerd
from lastcall_lab.private_logind import PrivateLogind

PARTS = (
    "help",
    "lab",
    "simulate",
    *chaos.STORIES,
    guard_chaos.NAME,
    "failover",
    "guard",
    guard_states.NAME,
    guard_backoff.NAME,
    roll.NAME,
    drain.NAME,
    "processes",
    "rest",
    "containerd",
    "beside",
    beside_table.NAME,
    traffic.NAME,
    "mutants",
)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="few pods, once: shows that the bench works, no more")
    parser.add_argument(
        "--pairs",
        type=int,
        default=3,
        help="measurements with many pods, and turns of a failover and of the guard; 3 times as many with few",
    )
    parser.add_argument(
        "--api", metavar="KUBECONFIG", type=Path, help="failover: at this API server, instead of a lab's"
    )
    parser.add_argument(
        "--pods", type=int, help="failover: so many pods of 20 nodes at kube-apiserver, and nothing else"
    )
    chosen = parser.parse_args()
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if chosen.pairs < 1:
        parser.error(f"--pairs {chosen.pairs}: must be at least 1")
    return chosen


class Bench:
    """The parts that were chosen; collects their rows, and why there are none."""

    def __init__(self, chosen):
        self.parts = chosen.parts or PARTS
        self.counts = (3,) if chosen.quick else (1, 50, 110)
        self.quick = chosen.quick
        self.pairs = 1 if chosen.quick else chosen.pairs
        self.rest_pods = 2 if chosen.quick else 50
        self.rest_seconds = 1 if chosen.quick else 60
        self.rows = []
        self.lab_rows = []
        self.failover_rows = []
        self.guard_rows = []
        self.state_rows = []
        self.traffic_rows = []
        self.roll_rows = []
        self.drain_rows = []
        self.told = []
        self.beside_table = ""
        self.api, self.pods = chosen.api, chosen.pods
        self.left_out = []
        self.mutants = mutants.Mutants(tell=_tell, count=2 if chosen.quick else mutants.COUNT)
        self.chances = [
            chaos.Chaos(name, quick=chosen.quick, tell=_tell) for name in chaos.STORIES if name in self.parts
        ]
        if guard_chaos.NAME in self.parts:
            self.chances.append(guard_chaos.GuardChaos(quick=chosen.quick, tell=_tell))

    async def run(self):
        no_logind, no_containerd = PrivateLogind.why_not(), containerd.unavailable_reason()
        if "help" in self.parts:
            self.rows.append(await asyncio.to_thread(rest.help_row, 2 if self.quick else 10))
        if "lab" in self.parts:
            self.lab_rows = await lab.Lab(quick=self.quick, tell=_tell).rows()
        if "simulate" in self.parts:
            self.rows += await asyncio.to_thread(simulate.rows, quick=self.quick, tell=_tell)
        for chance in self.chances:
            self.rows += await asyncio.to_thread(chance.rows)
        if "failover" in self.parts:
            part = failover.Failover(quick=self.quick, turns=self.pairs, tell=_tell, access=self.api, only=self.pods)
            self.failover_rows = await part.rows()
            self.left_out += part.left_out
        if "guard" in self.parts:
            part = guard.Guard(quick=self.quick, turns=self.pairs, tell=_tell)
            self.guard_rows = await part.rows()
            self.left_out += part.left_out
            self.told += part.told
        if guard_states.NAME in self.parts:
            part = guard_states.GuardStates(quick=self.quick, tell=_tell)
            self.state_rows = await asyncio.to_thread(part.rows)
            self.left_out += part.left_out
        if guard_backoff.NAME in self.parts:
            part = guard_backoff.GuardBackoff(quick=self.quick, turns=1, tell=_tell)
            self.rows += await part.rows()
            self.left_out += part.left_out
        if roll.NAME in self.parts:
            part = roll.Roll(quick=self.quick, turns=self.pairs, tell=_tell)
            self.roll_rows = await part.rows()
            self.left_out += part.left_out
            self.told += part.told
        if drain.NAME in self.parts:
            part = drain.Drain(quick=self.quick, turns=self.pairs, tell=_tell)
            self.drain_rows = await asyncio.to_thread(part.rows)
            self.told += part.told
        if traffic.NAME in self.parts:
            self.traffic_rows = await traffic.Traffic(quick=self.quick, tell=_tell).rows()
        if "mutants" in self.parts:
            self.rows += await asyncio.to_thread(self.mutants.rows)
        if no_logind:
            self._leave_out(("processes", "containerd", "rest", "beside", beside_table.NAME), no_logind)
            return
        if "processes" in self.parts:
            await self._latencies("processes", ProcessNode)
        if "rest" in self.parts:
            _tell("lab node at rest")
            self.rows += await rest.process_rows(pods=self.rest_pods, seconds=self.rest_seconds)
        if no_containerd:
            self._leave_out(("containerd", "rest with containerd", "beside", beside_table.NAME), no_containerd)
            return
        if {"containerd", "rest", "beside"} & set(self.parts):
            await self._with_containerd()
        if beside_table.NAME in self.parts and (why := beside_table.why_not()):
            self._leave_out((beside_table.NAME,), why)
        elif beside_table.NAME in self.parts:
            self.beside_table = await beside_table.markdown(_tell)

    async def _with_containerd(self):
        async with containerd.PrivateContainerd() as private:
            if "rest" in self.parts:
                _tell("agent at rest")
                self.rows += await rest.container_rows(private, pods=self.rest_pods, seconds=self.rest_seconds)
            if "containerd" in self.parts:
                await self._latencies("containerd", lambda: ContainerNode(private))
            if "beside" in self.parts:
                await self._beside(private)

    async def _beside(self, private):
        if why := beside.Beside.why_not():
            self._leave_out(("beside",), why)
            return
        part = beside.Beside(private, quick=self.quick, turns=self.pairs, tell=_tell)
        self.rows += await part.rows()
        self.left_out += part.left_out

    async def _latencies(self, name, make):
        """Few pods are quick to start, and their figures are the small ones, which noise moves most."""
        few = self.pairs if self.quick else 3 * self.pairs
        for count in self.counts:
            repetitions = few if count == 1 else self.pairs
            self.rows += await latency.rows(name, make, count, repetitions=repetitions, tell=_tell)
        self.rows += await latency.thirteen(name, make, repetitions=few, tell=_tell)

    def _leave_out(self, parts, why):
        self.left_out += [f"{part}: {why}" for part in parts if part.partition(" ")[0] in self.parts]

    def report(self):
        """All that there is to say, for standard output."""
        tables = (
            (self.rows, HEAD),
            (self.lab_rows, lab.HEAD),
            (self.failover_rows, failover.HEAD),
            (self.guard_rows, guard.HEAD),
            (self.state_rows, guard_states.HEAD),
            (self.traffic_rows, traffic.HEAD),
            (self.roll_rows, roll.HEAD),
            (self.drain_rows, drain.HEAD),
        )
        verdicts = [row.met for rows, _ in tables for row in rows if row.met is not None]
        yield from machine.describe()
        yield from (f"- {one}" for one in self.told)
        yield f"- `{' '.join(['bench/run.py', *sys.argv[1:]])}`"
        yield ""
        for rows, head in tables:
            if rows:
                yield table(rows, head)
                yield ""
        if self.beside_table:
            yield from (self.beside_table, "")
        for chance in self.chances:
            yield from chance.told()
            yield ""
        if self.mutants.verdicts:
            yield from self.mutants.table()
            yield ""
        yield f"{verdicts.count(True)} of {len(verdicts)} targets met."
        yield from (f"Not measured: {reason}." for reason in self.left_out)


def _tell(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what it has started ends with it
    bench = Bench(arguments())
    asyncio.run(bench.run())
    print("\n".join(bench.report()))
