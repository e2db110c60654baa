"""300 seeds of machines that are drained, and faults of the drains and of everything beside them: no promise is broken.

``LASTCALL_DRAIN_SEEDS`` names others: how many from 1 on, or ``FIRST:LAST``.
"""

import json
import os
import sys

import pytest
from support.virtual_time.other_python import check_same, told_by

from lastcall_lab.simulation import drain_chaos
from lastcall_lab.simulation.coverage import fault_kinds
from lastcall_lab.simulation.report import text
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.writer import write_scenario

BATCHES = 12


def batches():
    """So many that all processors have enough to do."""
    first, _, last = os.environ.get("LASTCALL_DRAIN_SEEDS", "300").rpartition(":")
    wanted = range(int(first or 1), int(last) + 1)
    size = -(-len(wanted) // BATCHES)
    return [wanted[at : at + size] for at in range(0, len(wanted), size)]


@pytest.fixture
def noted(tmp_path_factory):
    """A directory of all workers of this run."""
    base = tmp_path_factory.getbasetemp()
    directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "drain-chaos"
    directory.mkdir(exist_ok=True)
    return directory


@pytest.mark.timeout(600)
@pytest.mark.parametrize("batch", batches(), ids=lambda batch: f"{batch[0]}-{batch[-1]}")
def test_no_promise_is_broken_and_every_fault_strikes(batch, noted):
    """The batch that ends last sees to it that over all of them everything that can happen has happened."""
    struck = set()
    for seed in batch:
        outcome = run_rehearsal(drain_chaos.generate_scenario(seed), seed)
        if outcome.violations:
            again = f"lastcall simulate drain-chaos --seed {seed}"
            pytest.fail(f"{text.render_text(outcome)}\n{again}\n{again} --shrink", pytrace=False)
        struck |= {one.kind for one in outcome.faults}
    unfinished = noted / f"{batch[0]}.part"
    unfinished.write_text(json.dumps(sorted(struck)))
    unfinished.rename(unfinished.with_suffix(".json"))
    parts = [json.loads(path.read_text()) for path in noted.glob("*.json")]
    if len(parts) == len(batches()) and sum(map(len, batches())) >= 300:
        everywhere = {kind for part in parts for kind in part}
        assert {kind for verb in drain_chaos.VERBS for kind in fault_kinds(verb)} - everywhere == set()


def test_everything_happens_to_somebody():
    happens = {event.verb for seed in range(1, 301) for event in drain_chaos.generate_scenario(seed).timeline}
    assert happens == set(drain_chaos.VERBS)
    assert all(fault_kinds(verb) for verb in happens)


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_story_can_be_written_down(seed):
    story = drain_chaos.generate_scenario(seed)
    assert read_scenario(write_scenario(story).encode(), "story") == story


@pytest.mark.timeout(600)
def test_neither_the_process_nor_its_hashes_matter():
    one, two = (told_by(sys.executable, "support.simulation.repeatable_chaos", 3, "drain", hashes=n) for n in (1, 2))
    check_same(one, two)
    assert len(one) > 3000
