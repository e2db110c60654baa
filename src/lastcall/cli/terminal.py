"""The terminal that standard output is connected to: how wide lines may be, and whether they may have colours."""

import os
import shutil
import sys
from typing import NamedTuple

_WHOLE_LINES = 4096
"""Longest line in columns that names can cause."""


class Terminal(NamedTuple):
    """``width`` in columns; ``coloured`` if lines may contain ANSI styles."""

    width: int
    coloured: bool = False


def stdout_terminal() -> Terminal:
    """As wide as the terminal, or as COLUMNS says; a pipe or a file gets whole lines without colours.

    A COLUMNS that is 0 or no number counts as not set. NO_COLOR and TERM=dumb turn colours off (https://no-color.org).
    """
    connected = sys.stdout is not None and sys.stdout.isatty()
    columns = os.environ.get("COLUMNS", "")
    fits = connected or (columns.isdecimal() and int(columns) > 0)
    coloured = connected and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("dumb", "unknown")
    return Terminal(shutil.get_terminal_size().columns if fits else _WHOLE_LINES, coloured)
