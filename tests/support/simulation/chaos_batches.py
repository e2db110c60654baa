"""Random stories of one kind, in batches that run side by side, and what struck in all of them together."""

import json
import os

import pytest

from lastcall_lab.simulation.coverage import fault_kinds
from lastcall_lab.simulation.report import text
from lastcall_lab.simulation.runner import run_rehearsal
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.writer import write_scenario

BATCHES = 12
"""So many that all processors have enough to do."""

EVERYTHING = 300
"""So many seeds are enough for every fault to strike."""


class ChaosBatches:
    """``name`` is what ``lastcall simulate`` calls the stories, ``stories`` the module that makes them.

    The environment's ``variable`` names other seeds than 1 to 300: how many from 1 on, or ``FIRST:LAST``.
    """

    def __init__(self, name, stories, variable):
        self._name, self._stories = name, stories
        first, _, last = os.environ.get(variable, str(EVERYTHING)).rpartition(":")
        self._seeds = range(int(first or 1), int(last) + 1)

    @property
    def batches(self):
        size = -(-len(self._seeds) // BATCHES)
        return [self._seeds[at : at + size] for at in range(0, len(self._seeds), size)]

    @property
    def each(self):
        """The mark of a test that plays the ``batch`` which it is given."""
        return pytest.mark.parametrize("batch", self.batches, ids=lambda batch: f"{batch[0]}-{batch[-1]}")

    def play(self, batch, tmp_path_factory):
        """The outcomes of a batch; fails with the first broken promise, and how to see it again as short as it can be.

        The batch that ends last sees to it that over all of them everything that can happen has happened.
        """
        outcomes = [self._play_seed(seed) for seed in batch]
        directory = self._shared_directory(tmp_path_factory)
        unfinished = directory / f"{batch[0]}.part"
        unfinished.write_text(json.dumps(sorted({one.kind for outcome in outcomes for one in outcome.faults})))
        unfinished.rename(unfinished.with_suffix(".json"))
        self._check_coverage([json.loads(path.read_text()) for path in directory.glob("*.json")])
        return outcomes

    def check_verbs(self):
        """Everything that can happen happens in one of them."""
        made = [self._stories.generate_scenario(seed) for seed in range(1, EVERYTHING + 1)]
        assert {event.verb for story in made for event in story.timeline} == set(self._stories.VERBS)

    def check_text(self, seed):
        """A story that is written down and read again is the same."""
        story = self._stories.generate_scenario(seed)
        assert read_scenario(write_scenario(story).encode(), "story") == story

    def _play_seed(self, seed):
        outcome = run_rehearsal(self._stories.generate_scenario(seed), seed)
        if outcome.violations:
            again = f"lastcall simulate {self._name} --seed {seed}"
            said = [text.render_text(outcome), text.failure_line(outcome), again, f"{again} --shrink"]
            pytest.fail("\n".join(said), pytrace=False)
        return outcome

    def _shared_directory(self, tmp_path_factory):
        """One of all workers of this run."""
        base = tmp_path_factory.getbasetemp()
        directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / self._name
        directory.mkdir(exist_ok=True)
        return directory

    def _check_coverage(self, parts):
        if len(parts) == len(self.batches) and len(self._seeds) >= EVERYTHING:
            struck = {kind for part in parts for kind in part}
            assert {kind for verb in self._stories.VERBS for kind in fault_kinds(verb)} - struck == set()
