"""The lab as ``lastcall lab status``, ``power``, ``bmc`` and ``down`` reach it: by its kubeconfig, at its own pages."""

import re
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.kube import failures, kubeconfig
from lastcall.adapters.kube.http import Http
from lastcall.errors import InvalidInput, TimedOut
from lastcall.lab.pages import PREFIX
from lastcall.lab.up import default_kubeconfig


async def ask(method: str, page: str, path: Path | None) -> dict[str, Any]:
    """What the page answers. InvalidInput if there is no lab, ApiFailure if it refuses, TimedOut if a BMC is silent."""
    path = path or default_kubeconfig()
    if not path.exists():
        raise InvalidInput("--kubeconfig", [f"there is no {path}: start a lab by lastcall lab up, or name its file"])
    access = kubeconfig.load([path], SystemClock())
    http = Http(access.endpoint, access.credentials)
    try:
        answer = await http.request(method, PREFIX + page, {}, b"")
    finally:
        http.close()
    if answer.status >= 300:
        failure = failures.failure(answer)
        raise TimedOut(str(failure)) if failure.reason == "Timeout" else failure
    assert isinstance(answer.body, bytes)
    said: dict[str, Any] = msgspec.json.decode(answer.body)
    return said


def show(said: dict[str, Any], output: str) -> None:
    """As JSON, or as a table."""
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(said), indent=2).decode())
        return
    rows = said.get("nodes", [])
    table = Table(*(_heading(name) for name in (rows[0] if rows else ())), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(", ".join(map(str, cell)) if isinstance(cell, list) else str(cell) for cell in row.values()))
    Console(soft_wrap=True).print(table if rows else "The lab has no machines.")


def _heading(name: str) -> str:
    """Of a field's column, as kubectl writes them: ``POWER``, ``BMC-FAULTS``."""
    return re.sub("(?=[A-Z])", "-", name).upper()
