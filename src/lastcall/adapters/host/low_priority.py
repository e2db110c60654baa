"""Lets all other programs of the machine go first."""

import contextlib
import os
from pathlib import Path

NICE = 19


def yield_to_others() -> None:
    """Gives this process the lowest priority for the CPU, and makes it the first that is killed if memory runs out.

    For a program that runs in another one's container, and shares its limits.
    """
    os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
