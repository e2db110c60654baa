"""What the documentation says of scenarios."""

import re
from pathlib import Path

import pytest
from support.simulation.outcomes import broken

from lastcall.errors import InvalidInput
from lastcall_lab.simulation.report.document import outcome_document
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.scenario_text.reference_page import reference_page

ROOT = Path(__file__).parents[3]
HOW_TO = (ROOT / "docs/how-to/simulate.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", HOW_TO, re.DOTALL | re.MULTILINE)


def test_the_reference_page_is_current():
    assert (ROOT / "docs/reference/scenarios.md").read_text() == reference_page()


def scenario(pieces=BLOCKS):
    """The first block is a scenario, and the others are pieces of it."""
    text = pieces[0]
    for piece in pieces[1:]:
        field = piece.partition(":")[0]
        text = re.sub(rf"^{field}:\n(?:[ -].*\n)*", lambda _, new=piece: new, text, flags=re.MULTILINE)
    return text


@pytest.mark.parametrize("pieces", [BLOCKS[:1], BLOCKS])
def test_the_scenario_of_the_how_to_is_one(pieces):
    assert read_scenario(scenario(pieces).encode(), "page").expect


def test_the_mistakes_of_the_how_to_are_answered_so():
    wrong = (
        BLOCKS[0]
        .replace("requests:", "request:")
        .replace("reboot all nodes", "rebot node-1 #")
        .replace("- shop is", "- shopp is")
    )
    with pytest.raises(InvalidInput) as error:
        read_scenario(wrong.encode(), "upgrade.yaml")
    told = re.findall(r"^    (upgrade\.yaml: .*)$", HOW_TO, re.MULTILINE)
    assert len(told) == 3
    assert str(error.value).splitlines() == told


def test_every_field_of_the_json_is_in_the_reference():
    [part] = re.findall(
        r"^## lastcall simulate\n(.*?)(?=^## )", (ROOT / "docs/reference/cli.md").read_text(), re.DOTALL | re.MULTILINE
    )
    told = outcome_document(broken())
    names = set(told) | {
        name for key in ("verdicts", "violations", "workloads", "nodes", "lines", "faults") for name in told[key][0]
    }
    assert [name for name in sorted(names) if f"`{name}`" not in part and f"`{name}[]`" not in part] == []
