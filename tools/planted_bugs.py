"""Plants one bug after the other in a copy of the tree, and asks the tests, or chance, which of them notices.

    python tools/planted_bugs.py [NAME...]
    python tools/planted_bugs.py --check

Prints a Markdown table: the bug, where it was planted, the first tests that failed, or the first seed of ``lastcall
simulate chaos`` that broke a promise. Exit code 1 if one was not found.
Needs the virtual environment that ``make`` has made; takes some minutes. ``--check`` only says which of the bugs cannot
be planted any more, because the line that they change has changed.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from planted.bug import Bug

ROOT = Path(__file__).resolve().parent.parent
CHANCE = ROOT / "tools" / "planted" / "chance.py"


def read_bugs(tests: Path) -> list[Bug]:
    """Those of all ``planted.toml`` below a folder of tests."""
    files = sorted(tests.rglob("planted.toml"))
    tables = [one for file in files for one in tomllib.loads(file.read_text())["bug"]]
    return [Bug(**{**one, "tests": tuple(one.get("tests", ()))}) for one in tables]


BUGS = read_bugs(ROOT / "tests")


def stale(bug: Bug) -> str:
    """Why it cannot be planted; empty if it can."""
    path = ROOT / "src" / bug.file
    if not path.exists() or bug.old not in path.read_text():
        return f"{bug.name}: {bug.file} has no {bug.old!r}"
    missing = [name for name in (*bug.tests, *scenario_of(bug)) if "/" in name and not (ROOT / name).exists()]
    return f"{bug.name}: there is no {missing[0]}" if missing else ""


def ask(tree: Path, bug: Bug) -> list[str]:
    """Who notices the bug: the names of tests, or a seed and the promise that it breaks."""
    path = tree / "src" / bug.file
    text = path.read_text()
    path.write_text(text.replace(bug.old, bug.new))
    try:
        return ask_chance(tree, bug) if bug.seeds else ask_tests(tree, bug)
    finally:
        path.write_text(text)


def ask_tests(tree: Path, bug: Bug) -> list[str]:
    """The names of those that fail."""
    done = run(tree, "-m", "pytest", "-q", "--maxfail=2", "--timeout=20", *bug.tests)
    names = re.findall(r"^(?:FAILED|ERROR) \S+?::(\S+)", done, re.MULTILINE)
    whole = (name if name.endswith("]") else name.partition("[")[0] for name in names)  # parameters may have blanks
    if not names and " passed" not in done:
        sys.stderr.write(f"{bug.name}: the tests did not end, so that nothing is known:\n{done[-1000:]}\n")
    return [f"`{name}`" for name in dict.fromkeys(whole)]


def ask_chance(tree: Path, bug: Bug) -> list[str]:
    """The first seed that breaks a promise, if one of those that the bug is given does."""
    found = chance(tree, bug)
    return [f"seed {found[0]} of {bug.seeds}: {found[1]}"] if found else []


def chance(tree: Path, bug: Bug) -> list[str]:
    """The seed and the promise that it breaks; nothing if none is broken."""
    command = [sys.executable, str(CHANCE), "1", str(bug.seeds), *scenario_of(bug)]
    environment = {"PYTHONPATH": str(tree / "src"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    seed, _, why = done.strip().partition(" ")
    return [seed, why] if seed else []


def scenario_of(bug: Bug) -> list[str]:
    """What is played in place of chaos."""
    if bug.scenario and not bug.scenario.endswith(".yaml"):
        return [bug.scenario]
    return [str(CHANCE.parent / "scenarios" / bug.scenario)] if bug.scenario else []


def run(tree: Path, *arguments: str) -> str:
    """What a program says that runs in the tree."""
    environment = {"PYTHONPATH": f"{tree / 'src'}", "PATH": "/usr/bin:/bin", "HYPOTHESIS_PROFILE": "default"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False).stdout


def plant(bugs: Sequence[Bug]) -> int:
    """How many were not found."""
    missed = 0
    with tempfile.TemporaryDirectory(prefix="planted-") as directory:
        tree = Path(directory)
        for part in ("src", "tests", "deploy", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, tree / part)
        sys.stdout.write("| planted bug | where | found by |\n|---|---|---|\n")
        for bug in bugs:
            found = ask(tree, bug)
            missed += not found
            by = ", ".join(found[:2]) or "**nobody**"
            sys.stdout.write(f"| {bug.name} | `{bug.file}` | {by} |\n")
            sys.stdout.flush()
    return missed


def main(arguments: list[str]) -> int:
    """Plants those whose names contain one of the arguments, or all."""
    wanted = [word for word in arguments if word != "--check"]
    bugs = [bug for bug in BUGS if not wanted or any(word in bug.name for word in wanted)]
    if problems := [why for bug in bugs if (why := stale(bug))]:
        sys.stdout.write("".join(f"cannot be planted: {why}\n" for why in problems))
        return 1
    if "--check" in arguments:
        return 0
    missed = plant(bugs)
    sys.stdout.write(f"\n{len(bugs) - missed} of {len(bugs)} found\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
