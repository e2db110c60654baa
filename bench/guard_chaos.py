"""Stories of chance about the guard in virtual time, and what came of them: those that the tests play, and many more."""

import sys
import time
from collections import Counter
from pathlib import Path

from figures import Figures, Row

from lastcall_lab import virtual

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.guard.stories import FAULTS, check_promises, play

NAME = "guard-chaos"
SEEDS = 3000
TOLD = 250


class GuardChaos:
    """The seeds from 0 on, in one process."""

    def __init__(self, *, quick, tell):
        self._seeds = 4 if quick else SEEDS
        self._tell = tell
        self._broken = []
        self._times, self._in_seeds, self._went = Counter(), Counter(), Counter()

    def rows(self):
        """Plays them all."""
        began = time.perf_counter()
        for seed in range(self._seeds):
            self._play(seed)
            if (seed + 1) % TOLD == 0:
                self._tell(f"{seed + 1} seeds of {NAME}")
        seconds = time.perf_counter() - began
        what = f"{self._seeds} seeds of {NAME} in virtual time, one processor"
        never = sum(not self._times[one] for one in FAULTS)
        return [
            Row(f"{what}: seeds in a second", None, Figures((self._seeds / seconds,), "seeds")),
            Row(f"{what}: that break a promise", None, Figures((len(self._broken),), "seeds"), limit=0),
            Row(f"{what}: faults that never struck", None, Figures((never,), "kinds"), limit=0),
        ]

    def _play(self, seed):
        try:
            world = virtual.run(play(seed))
            check_promises(world, seed)
        except AssertionError as error:
            self._broken.append(f"seed {seed}: {error}")
            self._tell(self._broken[-1])
            return
        self._times += world.struck
        self._in_seeds += Counter(dict.fromkeys(world.struck, 1))
        self._went += Counter(by for *_, by in world.went)

    def told(self):
        """What was broken, which faults have struck, and by whom pods were deleted."""
        yield from self._broken
        yield ""
        yield "| fault | times | seeds |"
        yield "|---|---|---|"
        yield from (f"| {one} | {self._times[one]:,} | {self._in_seeds[one]:,} |" for one in FAULTS)
        yield ""
        yield "Pods deleted by: " + ", ".join(f"{who} {count:,}" for who, count in sorted(self._went.items()))
