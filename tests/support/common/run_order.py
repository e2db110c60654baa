"""The order in which the tests run: those that wait beside those that compute, so that no processor is idle."""

from pathlib import Path
from typing import TypeVar

TESTS = Path(__file__).parents[2]
WAITING = TESTS / "system"
COMPUTING = (TESTS / "lab/simulation", TESTS / "core/guard")

T = TypeVar("T")


def order_tests(tests: list[tuple[Path, T]]) -> list[T]:
    """The slow tests first: those that compute are spread among the files of those that wait.

    All others follow, in the order in which they came. They are short, so that all processors end at the same time. Each
    test is given with its file. The tests of a file that waits stay together: they may share what is costly to set up.
    """
    waiting = [one for one in tests if one[0].is_relative_to(WAITING)]
    computing = [one for one in tests if any(one[0].is_relative_to(room) for room in COMPUTING)]
    slow = {id(one) for one in (*waiting, *computing)}
    return spread_tests(waiting, computing) + [one[1] for one in tests if id(one) not in slow]


def spread_tests(waiting: list[tuple[Path, T]], computing: list[tuple[Path, T]]) -> list[T]:
    """Both as one list, in which each keeps its order and is spread over the whole length."""
    first = {file: at / len(waiting) for at, (file, _) in reversed(list(enumerate(waiting)))}
    places = [(first[file], test) for file, test in waiting]
    places += [(at / len(computing), test) for at, (_, test) in enumerate(computing)]
    return [test for _, test in sorted(places, key=lambda place: place[0])]
