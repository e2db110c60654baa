"""The judge's own arithmetic: by the documentation's examples, and against the product's rules, which it does not share."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.graceful.planning import remaining_time
from lastcall.graceful.planning.phase_assignment import index_for
from lastcall.graceful.planning.time_windows import MINIMUM
from lastcall.model import pods
from lastcall.model.int_or_percent import resolve_portion
from lastcall.model.shutdown import PhasePlan
from lastcall_lab.simulation import rules
from lastcall_lab.simulation.rules import arithmetic

LADDER = [(0, 30.0), (10_000, 40.0), (1_000_000_000, 30.0), (2_000_000_000, 20.0)]
"""docs/how-to/phases.md."""


@pytest.mark.parametrize(
    ("priority", "phase"),
    [(-5, 0), (0, 0), (500, 0), (9_999, 0), (10_000, 1), (50_000, 1), (2_000_000_000, 3), (2_000_001_000, 3)],
)
def test_the_phase_of_a_priority(priority, phase):
    assert arithmetic.phase_index([one for one, _ in LADDER], priority) == phase


def test_a_pod_below_all_phases_ends_with_the_first():
    assert arithmetic.phase_index([100, 2_000_000_000], 0) == 0


@pytest.mark.parametrize(
    ("left", "shares"),
    [
        (120.0, [30, 40, 30, 20]),
        (119.8, [30, 40, 30, 20]),
        (70.0, [15, 20, 15, 20]),
        (20.0, [0, 0, 0, 20]),
        (5.0, [0, 0, 0, 5]),
        (-1.0, [0, 0, 0, 0]),
    ],
)
def test_what_phases_get_of_less_time(left, shares):
    assert arithmetic.share_seconds(LADDER, left) == pytest.approx(shares)


def test_two_critical_phases_share_what_is_too_little_for_both():
    assert arithmetic.share_seconds([(0, 30.0), (2_000_000_000, 20.0), (2_000_001_000, 10.0)], 15.0) == [0, 10, 5]


@pytest.mark.parametrize(
    ("number", "name", "priority"),
    [
        (7, "system-node-critical", 7),
        (None, "system-node-critical", 2_000_001_000),
        (None, "system-cluster-critical", 2_000_000_000),
        (None, "mine", 0),
        (None, "", 0),
    ],
)
def test_the_priority_of_a_pod(number, name, priority):
    assert arithmetic.pod_priority(number, name) == priority


@pytest.mark.parametrize(("least", "every", "needed"), [("2", 5, 2), ("51%", 3, 2), ("50%", 4, 2), ("0%", 9, 0)])
def test_how_many_machines_are_needed(least, every, needed):
    assert arithmetic.machines_needed(least, every) == needed


def test_the_lock_is_held_for_what_is_asked_or_almost_for_what_is_granted():
    assert arithmetic.lock_deadline(100.0, 40.0, 60.0) == arithmetic.lock_deadline(100.0, 40.0, 40.0) == 140.0
    assert arithmetic.lock_deadline(100.0, 40.0, 30.0) == 129.95


# -- the product follows the same documentation ------------------------------------------------------------------------

PLANS = st.lists(
    st.tuples(st.integers(-10, 3_000_000_000), st.integers(0, 600)),
    min_size=1,
    max_size=5,
    unique_by=lambda one: one[0],
).map(sorted)


@given(PLANS, st.integers(-20, 3_000_000_000))
def test_both_choose_the_same_phase(plan, priority):
    groups = [PhasePlan(priority=least, seconds=seconds) for least, seconds in plan]
    assert index_for(groups, priority) == arithmetic.phase_index([least for least, _ in plan], priority)


@given(PLANS, st.floats(0, 1500))
def test_both_give_the_first_phase_the_same_time(plan, left):
    groups = [PhasePlan(priority=least, seconds=seconds) for least, seconds in plan]
    own = arithmetic.share_seconds([(least, float(seconds)) for least, seconds in plan], left)[0]
    assert remaining_time.next_phase_seconds(groups, left) == pytest.approx(own, abs=0.002)


@given(st.floats(0, 1e6), st.floats(0, 1000), st.floats(0, 1000))
def test_both_release_the_lock_at_the_same_time(seen, requested, granted):
    assert remaining_time.release_deadline(seen, requested, granted) == pytest.approx(
        arithmetic.lock_deadline(seen, requested, granted)
    )


@given(st.integers(0, 100), st.integers(1, 5000))
def test_both_round_percentages_up(percent, every):
    assert resolve_portion(f"{percent}%", every, up=True) == arithmetic.machines_needed(f"{percent}%", every)


def test_the_numbers_are_the_same():
    assert (arithmetic.AFTER_TERM, arithmetic.DEFAULT_GRACE) == (MINIMUM, pods.DEFAULT_GRACE)
    assert arithmetic.CLASSES == pods.SYSTEM_CLASSES


# -- nothing is shared -------------------------------------------------------------------------------------------------

TYPES = {("lastcall.model.pods", "Pod"), ("lastcall.model.shutdown", "PhasePlan")}


@pytest.mark.parametrize("path", sorted(Path(rules.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_the_rules_import_only_types_from_the_model(path):
    found = {
        (node.module, name.name)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lastcall.model")
        for name in node.names
    }
    assert found <= TYPES
