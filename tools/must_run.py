"""must_run.py RESULTS... LIST: fails if a test was skipped that LIST does not allow to be skipped.

RESULTS is pytest's JUnit XML of all tests; of a test that is in several files the last one counts. Each line of LIST is
a test as pytest names it, ``*`` for any characters, then ``#`` and the reason why it cannot run in continuous integration.
A test with parameters is named with them; without them its name stands for none of its cases. A line that matches no test
of RESULTS is an error as well.
"""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def outcomes(results: Path) -> dict[str, str]:
    """What became of each test, by the name that pytest gives it: passed, skipped, failure or error.

    A failure that is expected (xfail) has run, and passed. A module that is skipped as a whole is one test, which has the module's path as its name.
    """
    found: dict[str, str] = {}
    for case in ET.parse(results).iter("testcase"):
        name = re.sub(r"@[^\]]*$", "", case.get("name", ""))  # pytest-xdist adds @ and a group
        module, *classes = re.split(r"\.(?=[A-Z])", case.get("classname", ""))
        test = (
            "::".join([module.replace(".", "/") + ".py", *classes, name]) if module else f"{name.replace('.', '/')}.py"
        )
        marks = [
            child.tag
            for child in case
            if child.tag in ("skipped", "failure", "error") and child.get("type") != "pytest.xfail"
        ]
        found[test] = marks[0] if marks else "passed"
    return found


def allowed(lines: list[str]) -> tuple[dict[str, re.Pattern[str]], list[str]]:
    """The patterns of the tests that may be skipped, and the lines that give no reason."""
    patterns, unreasoned = {}, []
    for line in lines:
        test, _, reason = (part.strip() for part in line.partition("#"))
        if test and not reason:
            unreasoned.append(test)
        elif test:
            patterns[test] = re.compile(".*".join(map(re.escape, test.split("*"))), re.DOTALL)
    return patterns, unreasoned


def main(*files: str) -> int:
    """The exit code; what is wrong is printed."""
    *results, listed = files
    patterns, unreasoned = allowed(Path(listed).read_text().splitlines())
    found = {test: what for one in results for test, what in outcomes(Path(one)).items()}
    skipped = [test for test, what in found.items() if what == "skipped"]
    wrong = [f"{test}: not passed, but {what}" for test, what in found.items() if what in ("failure", "error")]
    wrong += [
        f"{test}: skipped, and {listed} gives no reason why it may be"
        for test in skipped
        if not any(pattern.fullmatch(test) for pattern in patterns.values())
    ]
    wrong += [f"{listed}: {test} has no reason behind #" for test in unreasoned]
    wrong += [
        f"{listed}: {line} names no test"
        for line, pattern in patterns.items()
        if not any(map(pattern.fullmatch, found))
    ]
    if not found:
        wrong.append(f"{Path(results[0]).name} has no test")
    for line in wrong:
        sys.stdout.write(f"must run: {line}\n")
    sys.stdout.write(f"{len(found) - len(skipped)} of {len(found)} tests have run, {len(skipped)} were skipped\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
