"""What a planted bug is."""

from typing import NamedTuple


class Bug(NamedTuple):
    """``old`` is replaced by ``new`` in ``file`` (below ``src``), wherever it stands; ``tests`` are asked.

    Where ``seeds`` are given, so many seeds of ``lastcall simulate chaos`` are tried in their place, from 1 on, until
    one of them breaks a promise; or so many of a ``scenario``, a file below ``tools/planted/scenarios``, or failover-chaos.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
    seeds: int = 0
    scenario: str = ""
