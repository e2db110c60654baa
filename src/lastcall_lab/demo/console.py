"""The console on which the demo draws."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.segment import Segment

from lastcall.cli.terminal import stdout_terminal
from lastcall.model.foreign_text import plain_lines


class SafeConsole(Console):
    """Removes control sequences from drawn text, except our own colours and lines."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """``Console.render``."""
        for one in super().render(renderable, options):
            yield one if one.control else Segment(plain_lines(one.text), one.style)


def stdout_console() -> Console:
    """A console as wide as ``stdout_terminal`` says."""
    return SafeConsole(highlight=False, emoji=False, markup=False, width=stdout_terminal().width)
