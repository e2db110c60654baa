"""Tables for people, in time linear in their lines: a cluster has 30,000 pods.

A name is folded where the terminal is narrow, and never truncated. If even that does not fit, lines are longer than the
terminal. Lines have no trailing blanks, so that tables can be pasted and compared.
"""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from lastcall.cli.terminal import Terminal

_NARROWEST = 20
"""The least width of a name or a sentence."""


class TableRow(NamedTuple):
    """A line of a table: a name, short cells beside it, and notes below it."""

    name: str
    cells: tuple[str, ...]
    notes: Sequence[str] = ()


def print_number_table(terminal: Terminal, titles: Sequence[str], rows: Sequence[TableRow]) -> None:
    """Prints a table; its first column folds, the others align right. ``titles`` are of all columns."""
    title, *others = titles
    widths = [max(len(title), *(len(row.cells[at]) for row in rows)) for at, title in enumerate(others)]
    natural = max(
        len(title), *(2 + len(row.name) for row in rows), *(4 + len(note) for row in rows for note in row.notes)
    )
    width = min(natural, max(_NARROWEST, terminal.width - 2 - sum(2 + one for one in widths)))

    def lines() -> Iterator[str]:
        yield _style_line(terminal, _table_line(title, others, width, widths), dim=True)
        for row in rows:
            first, *rest = _fold_name(row.name, width, 2)
            yield _table_line(first, row.cells, width, widths)
            yield from (f" {one}" for one in rest)
            for note in row.notes:
                yield from (_style_line(terminal, f" {one}", fg="yellow") for one in _wrap_text(note, width, 4))

    _print_lines(lines)


def print_reason_table(terminal: Terminal, rows: Sequence[tuple[str, str]]) -> None:
    """Prints a table of names, with a sentence for each."""
    natural, sentence = (max(len(row[at]) for row in rows) for at in (0, 1))
    beside = min(sentence, max(_NARROWEST, terminal.width // 2))
    width = min(natural + 2, max(_NARROWEST, terminal.width - 4 - beside))
    room = max(_NARROWEST, terminal.width - 4 - width)

    def lines() -> Iterator[str]:
        for name, why in rows:
            left, right = _fold_name(name, width, 2), _wrap_text(why, room, 0)
            for at in range(max(len(left), len(right))):
                one = left[at] if at < len(left) else ""
                yield f" {one:<{width}}  {right[at] if at < len(right) else ''}".rstrip()

    _print_lines(lines)


def print_text_table(terminal: Terminal, titles: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> None:
    """Prints a table as kubectl does, with columns aligned left; a long sentence in the last column is wrapped there."""
    *heads, last = titles
    widths = [max(len(head), *(len(cells[at]) for cells, _ in rows)) for at, head in enumerate(heads)]
    before = sum(width + 3 for width in widths)
    room = max(_NARROWEST, terminal.width - before)

    def lines() -> Iterator[str]:
        for cells, sentence in [(heads, last), *rows]:
            beside = "".join(f"{cell:<{width}}   " for cell, width in zip(cells, widths, strict=True))
            first, *more = _wrap_text(sentence, room, 0)
            yield f"{beside}{first}".rstrip()
            yield from (f"{'':{before}}{line}" for line in more)

    _print_lines(lines)


def print_sentence(terminal: Terminal, text: str, *, bold: bool | None = None, fg: str | None = None) -> None:
    """Prints a sentence, wrapped where the terminal is narrow."""
    for line in _wrap_text(text, max(_NARROWEST, terminal.width), 0):
        click.echo(_style_line(terminal, line, bold=bold, fg=fg))


def _table_line(name: str, cells: Sequence[str], width: int, widths: Sequence[int]) -> str:
    beside = "".join(f"  {cell:>{one}}" for cell, one in zip(cells, widths, strict=True))
    return f" {name:<{width}}{beside}"


def _fold_name(name: str, width: int, indent: int) -> list[str]:
    room = width - indent
    return [" " * indent + name[at : at + room] for at in range(0, len(name), room)] or [""]


def _wrap_text(text: str, width: int, indent: int) -> list[str]:
    if indent + len(text) <= width:
        return [" " * indent + text]
    before = " " * indent
    return textwrap.wrap(text, width, initial_indent=before, subsequent_indent=before, break_on_hyphens=False)


def _style_line(terminal: Terminal, line: str, **how: Any) -> str:
    return click.style(line, **how) if terminal.coloured else line


def _print_lines(lines: Callable[[], Iterator[str]]) -> None:
    click.echo("\n".join(lines()))
