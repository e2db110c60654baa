"""Which seed finds each of the bugs that are planted for chance, and what the shortest scenario looks like that shows it.

    python tools/planted_by_chance.py [NAME...]

Prints the Markdown table of ``docs/planted-bugs-simulation.md``, as many bugs at a time as there are processors. Exit
code 1 if one was not found. Takes half an hour of CPU time.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path

from planted import simulation, simulation_rules
from planted.bug import Bug
from planted_bugs import ROOT, chance, stale


def found(bug: Bug) -> Sequence[str]:
    """The seed, the promise that it breaks, and the shortest scenario; nothing if none of the bug's seeds breaks one."""
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        tree = Path(directory)
        shutil.copytree(ROOT / "src", tree / "src")
        path = tree / "src" / "lastcall" / bug.file
        path.write_text(path.read_text().replace(bug.old, bug.new))
        return chance(tree, bug, "--shrink")


def row(bug: Bug, told: Sequence[str]) -> str:
    """Of the table."""
    if not told:
        return f"| {bug.name} | **nothing in {bug.seeds} seeds** | | |"
    seed, why, short = told
    where = f"{seed} of `{bug.scenario}`" if bug.scenario else seed
    return f"| {bug.name} | {why} | {where} | {short} |"


def main(names: Sequence[str]) -> int:
    """Those whose names contain one of the words, or all."""
    bugs = [
        bug
        for bug in (*simulation.BUGS, *simulation_rules.BUGS)
        if bug.seeds and (not names or any(word in bug.name for word in names))
    ]
    if problems := [why for bug in bugs if (why := stale(bug))]:
        sys.stdout.write("".join(f"cannot be planted: {why}\n" for why in problems))
        return 1
    sys.stdout.write("| planted bug | promise that it breaks | seed | shortest scenario |\n|---|---|---|---|\n")
    missed = 0
    with ThreadPool(len(os.sched_getaffinity(0))) as pool:
        for bug, told in zip(bugs, pool.imap(found, bugs), strict=True):
            missed += not told
            sys.stdout.write(f"{row(bug, told)}\n")
            sys.stdout.flush()
    sys.stdout.write(f"\n{len(bugs) - missed} of {len(bugs)} found\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
