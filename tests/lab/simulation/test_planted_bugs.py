"""Some of the bugs that are planted for chance: the machinery that looks for broken promises finds them."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SEEDS = 8
"""Of each of these bugs that many do; chance is given more where it needs them."""

RULE_SEEDS = 20
"""Within which chance finds a bug in the rules; most seeds have the pods and the grants that a rule needs only now and then."""


@pytest.fixture
def tools(monkeypatch):
    """The modules of ``tools``."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import planted_bugs

    yield planted_bugs
    for name in [name for name in sys.modules if name.partition(".")[0] in ("planted", "planted_bugs")]:
        del sys.modules[name]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("preStop is skipped", "preStop honoured while time is left"),
        ("the lock is not released at the end", "the lock is released when the pods have ended"),
        ("phases in the reverse order", "no phase before the one below it is over"),
        ("taints are replaced, not merged", "nothing of others is changed"),
        ("a journal of another boot is gone on with", "the lock is held when the machine goes down"),
    ],
)
def test_a_planted_bug_is_found(name, promise, tools, tmp_path):
    bug = planted(name, tools, tmp_path)
    seed, broken = tools.chance(tmp_path, bug._replace(seeds=min(bug.seeds, SEEDS)))
    assert (int(seed) <= SEEDS, broken) == (True, promise)


def planted(name, tools, tree):
    """The bug of that name, which is in the tree now."""
    [bug] = [bug for bug in tools.BUGS if bug.name == name and bug.seeds]
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__"))
    path = tree / "src" / bug.file
    path.write_text(path.read_text().replace(bug.old, bug.new))
    return bug


# -- the rules that the judge must not share ---------------------------------------------------------------------------

ORDER = "no phase before the one below it is over"
KILL = "no SIGKILL before its time"
OVERRUN = "no pod has more than its grace, or than its phase"
PRE_STOP = "preStop honoured while time is left"
RULES = {
    "a pod at the very edge of a phase ends with the one below": ORDER,
    "a phase gets half of its time where less is granted": PRE_STOP,
    "SIGKILL follows SIGTERM at once where the grace is over": KILL,
    "only the two system classes have a priority": ORDER,
    "critical phases shrink with the others": OVERRUN,
}
"""Bugs in rules that the judge must not share with what it judges, and the promise that each breaks first. One of each kind: phases, pacing,
termination, priorities, the budget."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RULES)
def test_the_shipped_scenarios_find_a_bug_in_the_rules(name, tools, tmp_path):
    bug = planted(name, tools, tmp_path)
    seed, broken = tools.chance(tmp_path, bug._replace(seeds=1, scenario="battery-ladder"))
    assert (seed, broken) == ("1", RULES[name])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", RULES)
def test_chance_finds_a_bug_in_the_rules(name, tools, tmp_path):
    bug = planted(name, tools, tmp_path)
    assert tools.chance(tmp_path, bug._replace(seeds=RULE_SEEDS)), f"{RULE_SEEDS} seeds break nothing"
