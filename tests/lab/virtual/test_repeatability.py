"""The same seed gives the same run, step by step: in another process, with other hashes, and on another Python."""

import sys

import pytest
from support.virtual_time.other_python import check_same, other_python, told_by


def play(python, seed, hashes):
    """What the scenario tells: every step of the loop, every request, every piece of a watch."""
    return told_by(python, "support.virtual_time.repeatable_cluster", seed, "steps", hashes=hashes)


@pytest.mark.timeout(540)
def test_neither_the_process_nor_its_hashes_matter():
    one = play(sys.executable, 23, hashes=1)
    check_same(one, play(sys.executable, 23, hashes=2))
    requests = [line for line in one if " is answered " in line]
    assert len(requests) > 300
    assert len(one) > 3000


@pytest.mark.timeout(540)
def test_another_python_does_the_same():
    python, why = other_python()
    if not python:
        pytest.skip(why)
    check_same(play(sys.executable, 49, hashes=1), play(python, 49, hashes=2))


@pytest.mark.timeout(360)
def test_neither_do_earlier_runs_in_the_same_process():
    """Names with counters of the whole process would show here; another seed shows that the trace sees anything."""
    from support.virtual_time.repeatable_cluster import scenario

    from lastcall_lab import virtual

    first, again, other = (virtual.run(scenario(seed), steps=True)[0] for seed in (7, 7, 8))
    assert first == again
    assert first != other
