"""Plays the recorded cases to the lab's API server and says which differ, and where first.

python tools/replay.py [-v] [TOPIC | CASE]...
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.conformance.replay import cases
from support.lab.replayed_server import play


def main(arguments: list[str]) -> int:
    """How many differ is the last line; 1 if any does."""
    verbose = "-v" in arguments
    wanted = [one for one in arguments if not one.startswith("-")]
    good, bad = Counter[str](), Counter[str]()
    for topic, case in cases():
        if wanted and topic not in wanted and case["case"] not in wanted:
            continue
        try:
            play(case)
            good[topic] += 1
        except Exception as error:  # every way to fail is a difference
            bad[topic] += 1
            text = f"{type(error).__name__}: {error}" if not isinstance(error, AssertionError) else str(error)
            print(f"{topic}/{case['case']}: {text[: 2000 if verbose else 250]}")
    for topic in sorted(good | bad):
        print(f"{topic:20} {good[topic]:4} as recorded {bad[topic]:4} not")
    print(f"{sum(good.values())} as recorded, {sum(bad.values())} not")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
