"""The lab's API server against what a real Kubernetes 1.36.2 API server answered (tests/recordings)."""

import re

import pytest
import yaml
from support.conformance.replay import RECORDINGS, cases
from support.lab.replayed_server import play

DIFFERENCES = yaml.safe_load((RECORDINGS / "differences.yaml").read_text()) or {}
"""Cases that are answered differently, each with its reason; docs/known-limits.md tells people."""


def parameters():
    for topic, case in cases():
        marks = []
        if reason := DIFFERENCES.get(case["case"]):
            marks = [pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError)]
        yield pytest.param(case, id=f"{topic}/{case['case']}", marks=marks)


def test_people_are_told_of_every_difference():
    root = RECORDINGS.parents[1]
    conformance = yaml.safe_load((root / "tests/conformance/differences.yaml").read_text()) or {}
    [lab] = re.findall(r"^## The lab\n(.*?)^## ", (root / "docs/known-limits.md").read_text(), re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (`.*?`) \|", lab, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(.+?)`", row)} == set(DIFFERENCES)
    assert set(re.findall(r"`(test_\w+)`", lab)) == set(conformance)


@pytest.mark.parametrize("case", list(parameters()))
def test_as_recorded(case):
    play(case)
