"""Plants one bug after the other in a copy of the tree, and shows which test finds it.

    python tools/planted_bugs.py [NAME...]
    python tools/planted_bugs.py --check

The bugs are in ``tests/**/planted.toml``, beside the tests that find them. Prints a Markdown table: the bug, its file,
and the first test that failed, or the first seed of a simulation that broke a promise. Exit code 1 if a bug was not
found. Needs the virtual environment that ``make`` creates; takes some minutes. ``--check`` only lists the bugs that can
no longer be planted, because the code that they replace has changed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PLAY_SEEDS = ROOT / "tools" / "play_seeds.py"


class Bug(NamedTuple):
    """``old`` becomes ``new`` wherever it stands in ``file``, a path below ``src``; ``tests`` must find that.

    With ``seeds`` a simulation must find it: so many seeds of ``scenario``, from 1 on, are played until one of them breaks
    a promise. The scenario is a file, or the name of one that lastcall ships.
    """

    name: str
    file: str
    old: str
    new: str
    tests: Sequence[str] = ()
    seeds: int = 0
    scenario: str = "chaos"


def read_bugs(root: Path) -> list[Bug]:
    """All bugs of the tests below ``root``."""
    return [
        Bug(**entry)
        for path in sorted((root / "tests").rglob("planted.toml"))
        for entry in tomllib.loads(path.read_text())["bug"]
    ]


def why_not(bug: Bug) -> str:
    """Why the bug cannot be planted; empty if it can."""
    path = ROOT / "src" / bug.file
    if not path.exists() or bug.old not in path.read_text():
        return f"{bug.name}: {bug.file} does not contain {bug.old!r}"
    named = [*bug.tests, *([bug.scenario] if "/" in bug.scenario else [])]
    missing = [name for name in named if not (ROOT / name).exists()]
    return f"{bug.name}: {missing[0]} does not exist" if missing else ""


def find(tree: Path, bug: Bug) -> str:
    """What finds the bug in that tree; empty if nothing does."""
    path = tree / "src" / bug.file
    text = path.read_text()
    path.write_text(text.replace(bug.old, bug.new))
    try:
        return play_seeds(tree, bug) if bug.seeds else run_tests(tree, bug)
    finally:
        path.write_text(text)


def run_tests(tree: Path, bug: Bug) -> str:
    """The first of the bug's tests that fails."""
    said = run(tree, "-m", "pytest", "-q", "-x", "--timeout=20", *bug.tests)
    found = re.search(r"^(?:FAILED|ERROR) \S+?::([\w:]+)", said, re.MULTILINE)
    if not found and " passed" not in said:
        sys.stderr.write(f"{bug.name}: the tests did not end, so that nothing is known:\n{said[-1000:]}\n")
    return f"`{found[1]}`" if found else ""


def play_seeds(tree: Path, bug: Bug) -> str:
    """The first seed that breaks a promise, and the promise, separated by a blank."""
    scenario = str(ROOT / bug.scenario) if "/" in bug.scenario else bug.scenario
    return run(tree, str(PLAY_SEEDS), scenario, str(bug.seeds)).strip()


def run(tree: Path, *arguments: str) -> str:
    """The output of Python with the packages of that tree."""
    environment = {"PYTHONPATH": str(tree / "src"), "PATH": "/usr/bin:/bin", "HYPOTHESIS_PROFILE": "default"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=False).stdout


def plant(bugs: Sequence[Bug]) -> int:
    """Prints the table; returns how many bugs were not found."""
    missed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        tree = Path(directory)
        for part in ("src", "tests", "deploy", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, tree / part)
        sys.stdout.write("| planted bug | where | found by |\n|---|---|---|\n")
        for bug in bugs:
            found = find(tree, bug)
            missed += not found
            sys.stdout.write(f"| {bug.name} | `{bug.file}` | {found or '**nothing**'} |\n")
            sys.stdout.flush()
    return missed


def main(arguments: Sequence[str]) -> int:
    """Plants the bugs whose names contain one of the arguments, or all of them."""
    words = [word for word in arguments if word != "--check"]
    bugs = [bug for bug in read_bugs(ROOT) if not words or any(word in bug.name for word in words)]
    if problems := [why for bug in bugs if (why := why_not(bug))]:
        sys.stdout.write("".join(f"cannot be planted: {why}\n" for why in problems))
        return 1
    if "--check" in arguments:
        return 0
    missed = plant(bugs)
    sys.stdout.write(f"\n{len(bugs) - missed} of {len(bugs)} found\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
