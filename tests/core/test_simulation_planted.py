"""Some of the bugs that are planted for chance: the machinery that looks for broken promises finds them (docs/planted-bugs-simulation.md)."""

import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEEDS = 5
"""Of each of these bugs that many do; chance is given more where it needs them."""


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
    [bug] = [bug for bug in tools.BUGS if bug.name == name and bug.seeds]
    shutil.copytree(ROOT / "src" / "lastcall", tmp_path / "src" / "lastcall")
    path = tmp_path / "src" / "lastcall" / bug.file
    path.write_text(path.read_text().replace(bug.old, bug.new))
    seed, broken, _ = tools.chance(tmp_path, bug._replace(seeds=min(bug.seeds, SEEDS)))
    assert (int(seed) <= SEEDS, broken) == (True, promise)
