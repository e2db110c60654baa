"""``lastcall status``: how each node of the cluster stands."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli import cluster_access
from lastcall.cli.options import require_stdout
from lastcall.cli.tables import print_text_table
from lastcall.cli.terminal import stdout_terminal
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.adapters.kube.node_standings import NodeStandings
    from lastcall.report.node_status import NodeStatusRow


@click.command("status")
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=cluster_access.complete_node)
@cluster_access.cluster_options
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml", "name"]),
    default="table",
    show_default=True,
)
@click.pass_context
def command(
    ctx: click.Context, *, nodes: tuple[str, ...], kubeconfig: str | None, context: str | None, output: str
) -> None:
    """How each node of the cluster stands: armed or not, with how many seconds, its last shutdown, and problems.

    Reads Nodes, the agents' pods and NodeShutdowns, and changes nothing. What the API server cannot prove is Unknown: an
    agent that was armed and has not been heard of for a quarter of an hour may be dead.

    Exit code 0 also if there are problems; 1 if the cluster does not answer, or there is no Node of a name that is given.
    """
    from lastcall.adapters.host.clock import SystemClock

    require_stdout()
    found = asyncio.run(_read_cluster(nodes, kubeconfig, context))
    now = datetime.fromtimestamp(SystemClock().wall(), UTC)
    rows = _build_rows(found, now)
    if output in ("json", "yaml"):
        _print_document(rows, found.warnings, output)
    elif output == "name":
        click.echo("".join(f"node/{row.name}\n" for row in rows), nl=False)
    elif rows:
        _draw_rows(rows, now, wide=output == "wide")
    for warning in found.warnings if output not in ("json", "yaml") else ():
        click.echo(plain_text(f"warning: {warning}"), err=True)
    if not rows and not nodes:
        click.echo("No nodes found", err=True)
    for name in found.missing:
        click.echo(plain_text(f'{ctx.find_root().info_name}: nodes "{name}" not found'), err=True)
    ctx.exit(1 if found.missing else 0)


async def _read_cluster(nodes: Sequence[str], kubeconfig: str | None, context: str | None) -> "NodeStandings":
    from lastcall.adapters.kube.node_standings import NodeStandingsReader

    async with cluster_access.open_client(kubeconfig, context, manager="lastcall-status") as client:
        return await NodeStandingsReader(client).read(nodes)


def _build_rows(found: "NodeStandings", now: datetime) -> "list[NodeStatusRow]":
    from lastcall.report.node_status import node_status

    return [node_status(facts, now) for facts in found.nodes]


def _print_document(rows: "Sequence[NodeStatusRow]", warnings: Sequence[str], output: str) -> None:
    import msgspec

    from lastcall.manifests.yaml_output import to_yaml

    document: dict[str, Any] = {"nodes": msgspec.to_builtins(rows), "warnings": list(warnings)}
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(to_yaml([document]).removeprefix("---\n"), nl=False)


def _draw_rows(rows: "Sequence[NodeStatusRow]", now: datetime, *, wide: bool) -> None:
    from lastcall.report import node_status_table as table

    titles = table.WIDE_TITLES if wide else table.TITLES
    cells = [[plain_text(cell) for cell in table.table_cells(row, now, wide=wide)] for row in rows]
    problems = [plain_text(table.problems_text(row)) for row in rows]
    print_text_table(stdout_terminal(), [*titles, table.LAST_TITLE], list(zip(cells, problems, strict=True)))
