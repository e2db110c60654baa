"""Tables for people."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def unfilled(console: "Console", table: "Table") -> None:
    """Prints it without the blanks that fill its lines up to the width of their column."""
    with console.capture() as drawn:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in drawn.get().split("\n")), nl=False)
