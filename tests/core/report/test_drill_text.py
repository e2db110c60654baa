"""The head and the phases of a drill, in words."""

import pytest
from msgspec import structs

from lastcall.model.shutdown import PhaseRecord, PodRecord, ShutdownMode, ShutdownRecord
from lastcall.report.drill_text import head_lines, phase_title

POD = PodRecord(uid="u", namespace="d", name="web", priority=0, phase=0, grace=5.0, asked=30, started=0.0)
RECORD = ShutdownRecord(
    id="x",
    node="n1",
    boot_id="b",
    how="drill",
    mode=ShutdownMode.OBSERVE,
    wall=0.0,
    boottime=0.0,
    requested=30.0,
    granted=10.0,
    deadline=10.0,
    lock=True,
    phases=(PhaseRecord(priority=0, seconds=20, given=6.7), PhaseRecord(priority=100, seconds=10)),
    pods=(POD,),
)


def test_the_head():
    assert list(head_lines(RECORD)) == [
        "At         1970-01-01 00:00:00 UTC",
        "Asked for  30s",
        "Granted    10s, 20s less than asked for",
        "Lock       held: the machine would wait",
        "Pods       1",
    ]
    other = list(head_lines(structs.replace(RECORD, granted=None, lock=False)))
    assert other[2:4] == ["Granted    unlimited", "Lock       none is held: the machine would not wait"]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "Phase 1: priority 0 and above: 1 pod, at most 6.7s of 20s"),
        (1, "Phase 2: priority 100 and above: no pods: passed over at once"),
    ],
)
def test_the_phases(index, text):
    assert phase_title(RECORD, index) == text
