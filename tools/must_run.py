"""must_run.py RESULTS LIST: fails if a test of the list did not pass, for instance because it was skipped.

RESULTS is pytest's JUnit XML; LIST has a test on each line as pytest names it, without parameters: all of them count.
"""

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def outcomes(results: Path) -> dict[str, list[str]]:
    """What became of each test: a list of passed, skipped, failed or error, one for each set of parameters."""
    found: dict[str, list[str]] = {}
    for case in ET.parse(results).iter("testcase"):
        name = re.sub(r"(\[|@).*", "", case.get("name", ""), flags=re.DOTALL)  # pytest-xdist adds @ and a group
        module, *classes = re.split(r"\.(?=[A-Z])", case.get("classname", ""))
        path = "::".join([module.replace(".", "/") + ".py", *classes])
        marks = [child.tag for child in case if child.tag in ("skipped", "failure", "error")]
        found.setdefault(f"{path}::{name}", []).append(marks[0] if marks else "passed")
    return found


def main(results: str, listed: str) -> int:
    """The exit code."""
    lines = (line.split("#")[0].strip() for line in Path(listed).read_text().splitlines())
    wanted = [line for line in lines if line]
    found = outcomes(Path(results))
    bad = {test: found.get(test, ["not run"]) for test in wanted if set(found.get(test, ["not run"])) != {"passed"}}
    for test, what in bad.items():
        sys.stdout.write(f"must run: {test}: {', '.join(sorted(set(what)))}\n")
    sys.stdout.write(f"{len(wanted) - len(bad)} of the {len(wanted)} tests that must run have passed\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
