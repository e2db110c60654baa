"""The order in which the tests run: those that wait beside those that compute, so that no processor is idle."""

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

TESTS = Path(__file__).parents[2]
SLOW = ((TESTS / "system",), (TESTS / "lab/simulation", TESTS / "core/guard"))
"""The slow tests: those that wait, and those that compute."""
_STEP_BACK = 10
"""So much less important than the others are the slow tests that compute, as nice(1) counts."""
SHORT = tuple(TESTS / name for name in ("adapters", "cluster", "conformance", "contract"))
"""Among the others, those that wait."""

T = TypeVar("T")
Item = TypeVar("Item", bound=pytest.Item)


def order_tests(tests: list[tuple[Path, T]]) -> list[T]:
    """The slow tests first, then the short ones, so that all processors end at the same time.

    In both parts, those that compute are spread among the files of those that wait. Each test is given with its file. The
    tests of a file that waits stay together: they may share what is costly to set up.
    """
    waiting, computing = (_select_tests(tests, rooms) for rooms in SLOW)
    slow = {id(one) for one in (*waiting, *computing)}
    rest = [one for one in tests if id(one) not in slow]
    waiting_rest = _select_tests(rest, SHORT)
    short = {id(one) for one in waiting_rest}
    return spread_tests(waiting, computing) + spread_tests(waiting_rest, [one for one in rest if id(one) not in short])


@functools.cache
def steps_back(file: Path) -> bool:
    """Whether the tests of a file run at a lower priority: the slow ones that compute, where that can be taken back."""
    return os.geteuid() == 0 and any(file.is_relative_to(room) for room in SLOW[1])


@contextlib.contextmanager
def lower_priority(file: Path) -> Iterator[None]:
    """A test that computes leaves the processors to those that wait, whose times are real ones.

    Only root may raise its priority again afterwards; for others nothing changes.
    """
    if not steps_back(file):
        yield
        return
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, before + _STEP_BACK)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


def _select_tests(tests: list[tuple[Path, T]], rooms: tuple[Path, ...]) -> list[tuple[Path, T]]:
    files = {file for file, _ in tests}
    inside = {file for file in files if any(file.is_relative_to(room) for room in rooms)}
    return [one for one in tests if one[0] in inside]


def spread_tests(waiting: list[tuple[Path, T]], computing: list[tuple[Path, T]]) -> list[T]:
    """Both as one list, in which each keeps its order and is spread over the whole length."""
    first = {file: at / len(waiting) for at, (file, _) in reversed(list(enumerate(waiting)))}
    places = [(first[file], test) for file, test in waiting]
    places += [(at / len(computing), test) for at, (_, test) in enumerate(computing)]
    return [test for _, test in sorted(places, key=lambda place: place[0])]


def select_tests_of(directory: Path, items: list[Item]) -> list[Item]:
    """Those in the directory's own files. Each file is looked at once: there are a hundred times as many tests."""
    inside = {file for file in {item.path for item in items} if file.parent == directory}
    return [item for item in items if item.path in inside]
