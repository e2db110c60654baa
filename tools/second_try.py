"""second_try.py RESULTS SECOND: runs the tests once more, one after the other, that failed while others ran beside them.

RESULTS is pytest's JUnit XML of all tests, SECOND the file for that of the second try. Real servers on a loaded machine
miss times of their own; what fails alone too is a fault. Tests of decisions and of virtual time depend on nothing outside:
they get no second try, and neither do more than MOST tests. Each test that needed one is printed.
"""

import subprocess
import sys
from pathlib import Path

from must_run import outcomes

NEVER = ("tests/core/", "tests/lab/simulation/", "tests/lab/virtual/")
MOST = 10


def choose(found: dict[str, str]) -> tuple[list[str], str]:
    """The tests to run again, and why not if there is to be no second try."""
    failed = [test for test, what in found.items() if what in ("failure", "error")]
    if not failed:
        return [], "no test failed: what did is above"
    if len(failed) > MOST:
        return [], f"{len(failed)} tests failed, more than {MOST}"
    if certain := [test for test in failed if test.startswith(NEVER)]:
        return [], f"{certain[0]} does not depend on the machine"
    return failed, ""


def main(results: str, second: str) -> int:
    """The exit code: that of the second try, or 1 without one."""
    failed, why_not = choose(outcomes(Path(results)))
    if why_not:
        sys.stdout.write(f"second try: none: {why_not}\n")
        return 1
    for test in failed:
        sys.stdout.write(f"second try: {test}: failed beside others\n")
    sys.stdout.flush()
    return subprocess.run([sys.executable, "-m", "pytest", f"--junitxml={second}", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
