"""How many random mistakes in the code that decides are found by its tests.

    python bench/mutants.py [--count N] [--seed N]

Each mutant is one random mistake (``mutations.py``) in a copy of the tree. First the tests run that import the module,
then those that import another module of its folder, then those of its room (``lastcall.failover``, for example). Prints a
Markdown table, and the share that was found. The same seed takes the same mutants as long as the code stays the same. A
survivor is a mistake that no test finds, or a change that makes no difference: the reader of the table decides.
"""

import argparse
import ast
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from figures import Figures, Row
from mutations import Mutation, find_mutations

ROOT = Path(__file__).resolve().parent.parent
WHERE = (
    "failover/decisions/*.py",
    "failover/limits/*.py",
    "failover/evidence/*.py",
    "graceful/agent.py",
    "graceful/delay_inhibitor.py",
    "graceful/state_machine.py",
    "graceful/planning/*.py",
    "graceful/shutdown/*.py",
    "adapters/logind/*.py",
)
"""Below ``src/lastcall``: what decides about a failover, what plans and runs a shutdown, and the inhibitor lock."""

FOLDERS = ("tests/core", "tests/contract", "tests/adapters")
"""Not ``tests/lab`` and ``tests/system``: their tests are about other programs, or take minutes."""

COUNT, SEED = 30, 1
TEST_SECONDS, MOST_SECONDS = 60, 900
"""Of one test, and of all tests of a mutant."""

NOTHING_COLLECTED = 5
"""Exit code of pytest."""


# -- which tests -------------------------------------------------------------------------------------------------------


def module_name(path):
    """The dotted name of a file, whose path begins with ``src`` or ``tests``."""
    return ".".join(path.with_suffix("").parts[1:]).removesuffix(".__init__")


def imported_names(path):
    """The dotted names of all that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


class Tests:
    """Which tests import what, by themselves or by one module of ``tests/support``."""

    def __init__(self, root):
        support = {
            module_name(path.relative_to(root)): imported_names(path) for path in (root / "tests/support").rglob("*.py")
        }
        self._own, self._all = {}, {}
        for path in sorted(path for folder in FOLDERS for path in (root / folder).rglob("test_*.py")):
            own = imported_names(path)
            name = str(path.relative_to(root))
            self._own[name] = own
            self._all[name] = own.union(*(support.get(one, ()) for one in own))

    def nearest_first(self, module):
        """Groups of tests: those that import the module, another one of its folder, another one of its room."""
        seen = set()
        for found in (self._direct(module), self._below(module.rpartition(".")[0]), self._below(_room(module))):
            yield [name for name in found if name not in seen]
            seen.update(found)

    def _direct(self, module):
        """First those that import least, which say most about the module."""
        return sorted((name for name, own in self._own.items() if module in own), key=lambda name: len(self._own[name]))

    def _below(self, package):
        return [name for name, found in self._all.items() if any(one.startswith(f"{package}.") for one in found)]


def _room(module):
    """The package whose tests see what the module does: one of the core's rooms, or one of its adapters."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1] == "adapters" else 2])


# -- one mutant --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """``found_by`` is the test, or how the tests ended; empty for a survivor."""

    mutation: Mutation
    found_by: str

    def cells(self):
        found = f"`{self.found_by}`" if self.found_by else "**survived**"
        return f"| `{_cell(self.mutation.old)}` → `{_cell(self.mutation.new)}` | `{self.where}` | {found} |"

    @property
    def where(self):
        return f"{self.mutation.file}:{self.mutation.line}"


class Tree:
    """A copy of the tree, in which mutants are made and tests run."""

    def __init__(self, root):
        self.root = root
        ignored = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__")
        shutil.copytree(ROOT, root, ignore=ignored, dirs_exist_ok=True)
        self._broken = set()  # tests that fail without any mutant: they find nothing

    def judge(self, mutation, groups):
        """Runs one group of tests after the other until one of them finds it."""
        path = self.root / mutation.file
        source = path.read_bytes()
        for tests in groups:
            found = self._found_by(tests, path, source, mutation.applied_to(source))
            if found:
                return Verdict(mutation, found)
        return Verdict(mutation, "")

    def _found_by(self, tests, path, source, mutant):
        """What fails with the mutant and passes without it."""
        while True:
            path.write_bytes(mutant)
            try:
                found = self._failure(tests)
            finally:
                path.write_bytes(source)
            if not found.startswith("tests/") or not self._failure([found]):
                return found
            self._broken.add(found)

    def _failure(self, tests):
        """The first test that fails, or how they ended if none is named; empty if all pass."""
        tests = [name for name in tests if name not in self._broken]
        if not tests:
            return ""
        left_out = [f"--deselect={name}" for name in sorted(self._broken)]
        options = ["-q", "-x", f"--timeout={TEST_SECONDS}", *_worker_options(tests), *left_out]
        command = [sys.executable, "-m", "pytest", *options, *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        with subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as pytest:
            try:
                said, _ = pytest.communicate(timeout=MOST_SECONDS)
            except subprocess.TimeoutExpired:
                return f"no end after {MOST_SECONDS} s"
            finally:
                if pytest.poll() is None:
                    os.killpg(pytest.pid, signal.SIGKILL)
        if pytest.returncode in (0, NOTHING_COLLECTED):
            return ""
        named = re.search(r"^(?:FAILED|ERROR) ([^\s\[]+)", said, re.MULTILINE)  # parameters may have blanks
        return named[1] if named else f"exit code {pytest.returncode} of pytest"


def _worker_options(tests):
    processors = len(os.sched_getaffinity(0))
    return ["-n", str(processors), "--dist", "loadgroup"] if len(tests) > 1 and processors > 1 else []


def _cell(text):
    """One line, for a cell of a table."""
    one = " ".join(text.split()).replace("|", "\\|")
    return one if len(one) <= 70 else f"{one[:67]}..."


# -- all of them -------------------------------------------------------------------------------------------------------


def choose_mutations(count, seed):
    """So many mutations of all that can be made."""
    source = ROOT / "src" / "lastcall"
    files = sorted({path for pattern in WHERE for path in source.glob(pattern)})
    every = [one for path in files for one in find_mutations(str(path.relative_to(ROOT)), path.read_bytes())]
    return random.Random(seed).sample(every, min(count, len(every)))


class Mutants:
    """A part of the bench."""

    def __init__(self, *, tell, count=COUNT, seed=SEED):
        self._tell = tell
        self._count = count
        self._seed = seed
        self.verdicts = []

    def rows(self):
        """Judges them all."""
        with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
            tree, tests = Tree(Path(directory)), Tests(ROOT)
            for mutation in choose_mutations(self._count, self._seed):
                module = module_name(Path(mutation.file))
                verdict = tree.judge(mutation, tests.nearest_first(module))
                self.verdicts.append(verdict)
                self._tell(f"{len(self.verdicts)} of {self._count} mutants: {verdict.cells()}")
        found = sum(bool(verdict.found_by) for verdict in self.verdicts)
        what = f"{len(self.verdicts)} random mutants of seed {self._seed}: found by the tests"
        return [Row(what, None, Figures((100 * found / len(self.verdicts),), "%"))]

    def table(self):
        """The table."""
        yield "| mutant | where | found by |"
        yield "|---|---|---|"
        yield from (verdict.cells() for verdict in self.verdicts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=COUNT, help=f"how many; {COUNT} unless told")
    parser.add_argument("--seed", type=int, default=SEED, help="which ones")
    options = parser.parse_args()
    if options.count < 1:
        parser.error(f"--count {options.count}: must be at least 1")
    mutants = Mutants(
        tell=lambda text: print(text, file=sys.stderr, flush=True), count=options.count, seed=options.seed
    )
    [row] = mutants.rows()
    print("\n".join([*mutants.table(), "", f"{row.what}: {row.lastcall}"]))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the copy of the tree goes with it
    main()
