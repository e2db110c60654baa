"""What a planted bug is."""

from typing import NamedTuple


class Bug(NamedTuple):
    """``old`` is replaced by ``new`` in ``file`` (below ``src/lastcall``), wherever it stands; ``tests`` are asked."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()
