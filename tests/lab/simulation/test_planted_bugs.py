"""The judge of a simulation finds bugs that are planted in what it judges (``planted.toml``)."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SEEDS = 8
"""Seeds within which one of these bugs breaks its promise."""

RULE_SEEDS = 20
"""The same for a bug in the rules: only some seeds have the pods and the grants that a rule needs."""


@pytest.fixture
def tool(monkeypatch):
    """The module ``tools/planted_bugs.py``."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import planted_bugs

    yield planted_bugs
    del sys.modules["planted_bugs"]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("a rehearsal's agent skips preStop hooks", "preStop honoured while time is left"),
        ("a rehearsal's agent never releases the lock", "the lock is released when the pods have ended"),
        ("a rehearsal's agent runs phases in reverse order", "no phase before the one below it is over"),
        ("a rehearsal's controller replaces the taints of others", "nothing of others is changed"),
        ("a rehearsal's agent resumes a journal of another boot", "the lock is held when the machine goes down"),
    ],
)
def test_a_planted_bug_is_found(name, promise, tool, tmp_path):
    bug = plant(name, tool, tmp_path)
    seed, broken = play(tool, tmp_path, bug._replace(seeds=min(bug.seeds, SEEDS)))
    assert (int(seed) <= SEEDS, broken) == (True, promise)


def plant(name, tool, tree):
    """The bug of that name, which is in the tree now.

    The bytecode is copied with the sources, which keep their times, so that only the changed file is compiled again.
    """
    [bug] = [bug for bug in tool.read_bugs(ROOT) if bug.name == name]
    half_written = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(ROOT / "src", tree / "src", ignore=half_written)
    path = tree / "src" / bug.file
    path.write_text(path.read_text().replace(bug.old, bug.new))
    return bug


def play(tool, tree, bug):
    """The first seed that breaks a promise, and the promise."""
    seed, _, promise = tool.play_seeds(tree, bug).partition(" ")
    return seed, promise


# -- the rules that the judge must not share ---------------------------------------------------------------------------

ORDER = "no phase before the one below it is over"
KILL = "no SIGKILL before its time"
OVERRUN = "no pod has more than its grace, or than its phase"
PRE_STOP = "preStop honoured while time is left"
RULES = {
    "a pod at the edge of a phase ends with the phase below": ORDER,
    "a phase gets half of its time": PRE_STOP,
    "SIGKILL follows SIGTERM at once": KILL,
    "only the two system classes have a priority": ORDER,
    "critical phases shrink with the others": OVERRUN,
}
"""One bug of each kind (phases, pacing, termination, priorities, the budget), and the promise that it breaks first."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RULES)
def test_the_shipped_scenarios_find_a_bug_in_the_rules(name, tool, tmp_path):
    bug = plant(name, tool, tmp_path)
    assert play(tool, tmp_path, bug._replace(seeds=1, scenario="battery-ladder")) == ("1", RULES[name])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RULES)
def test_chance_finds_a_bug_in_the_rules(name, tool, tmp_path):
    bug = plant(name, tool, tmp_path)
    seed, _ = play(tool, tmp_path, bug._replace(seeds=RULE_SEEDS))
    assert seed, f"{RULE_SEEDS} seeds break nothing"
