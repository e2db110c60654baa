"""The client of ``lastcall lab status``, ``power``, ``bmc`` and ``down``: uses the kubeconfig and the lab's pages."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import click
import msgspec

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import api_errors, kubeconfig
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.errors import InvalidInput, TimedOut
from lastcall_lab.up.lab_pages import PREFIX
from lastcall_lab.up.lab_process import default_kubeconfig


async def ask_lab(method: str, page: str, path: Path | None) -> dict[str, Any]:
    """The page's answer. InvalidInput without a lab, ApiFailure if it refuses, TimedOut if a BMC is silent."""
    path = path or default_kubeconfig()
    if not path.exists():
        raise InvalidInput("--kubeconfig", [f"there is no {path}: start a lab by lastcall lab up, or name its file"])
    access = kubeconfig.load_kubeconfig([path], SystemClock())
    http = HttpsTransport(access.endpoint, access.credentials)
    try:
        answer = await http.request(method, PREFIX + page, {}, b"")
    finally:
        http.close()
    if answer.status >= 300:
        failure = api_errors.response_error(answer)
        raise TimedOut(str(failure)) if failure.reason == "Timeout" else failure
    assert isinstance(answer.body, bytes)
    said: dict[str, Any] = msgspec.json.decode(answer.body)
    return said


def show_answer(said: dict[str, Any], output: str) -> None:
    """Prints it as JSON, or as a table."""
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
        return
    rows = said.get("nodes", [])
    for line in _table_lines(rows) if rows else ["The lab has no machines."]:
        click.echo(line)


def _table_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Columns as kubectl writes them, never truncated; a list has a line for each of its items."""
    cells = [
        [[_column_heading(name)] for name in rows[0]],
        *([_cell_items(cell) for cell in row.values()] for row in rows),
    ]
    widths = [max(len(item) for column in columns for item in column) for columns in zip(*cells, strict=True)]
    for row in cells:
        for items in zip_longest(*row, fillvalue=""):
            yield "   ".join(map(str.ljust, items, widths)).rstrip()


def _cell_items(cell: Any) -> list[str]:
    return [str(item) for item in cell] or [""] if isinstance(cell, list) else [str(cell)]


def _column_heading(name: str) -> str:
    """The heading of a field's column in kubectl's style: ``POWER``, ``BMC-FAULTS``."""
    return re.sub("(?=[A-Z])", "-", name).upper()
