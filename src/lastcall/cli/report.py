"""``lastcall report``: describes a shutdown from the journals that the agent left."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastcall.cli import cluster_access
from lastcall.cli.agent_pod import run_in_agent_pod
from lastcall.cli.options import STATE_DIR
from lastcall.errors import InvalidInput, LastcallError

if TYPE_CHECKING:
    from lastcall.adapters.state.journal_files import JournalFiles
    from lastcall.model.shutdown import ShutdownRecord


@click.command("report")
@click.argument("shutdown", required=False, metavar="[ID]")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=STATE_DIR,
    show_default=True,
    help="Where the agent keeps its journals.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json", "html"]), default="text", show_default=True)
@click.option("--list", "list_", is_flag=True, help="Only the ids of the shutdowns that are known, the newest first.")
@click.option(
    "--node",
    metavar="NAME",
    shell_complete=cluster_access.complete_node,
    help="A node of the cluster: it runs in the pod of its agent, by kubectl exec.  [default: this machine]",
)
@cluster_access.cluster_options
@click.pass_context
def command(
    ctx: click.Context,
    *,
    shutdown: str | None,
    state_dir: Path,
    output: str,
    list_: bool,
    node: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """What happened in a shutdown: phases, pods, hooks, signals, and what was cut short.

    ID is the newest shutdown if it is left out. The text fits 100 columns; the HTML is one file that needs no other,
    the JSON a NodeShutdown of lastcall.dev/v1alpha1.

    Exit code 1 if no shutdown was journalled there, 2 if there is none of this ID.
    """
    from lastcall.adapters.state.journal_files import JournalFiles

    if list_ and shutdown is not None:
        raise click.UsageError(f"--list names all shutdowns and takes no ID, but {shutdown!r} is given")
    if node:
        words = ["report", f"--output={output}", *(["--list"] if list_ else []), *([shutdown] if shutdown else [])]
        ctx.exit(run_in_agent_pod(node, words, kubeconfig, context))
    if kubeconfig or context:
        raise click.UsageError("--kubeconfig and --context say where --node is: it is not given")
    journals = JournalFiles(state_dir)
    known = journals.list_ids()
    if list_:
        click.echo("".join(f"{name}\n" for name in known), nl=False)
        return
    if not known:
        raise LastcallError(f"{state_dir}: no shutdown was journalled there yet")
    if shutdown is not None and shutdown not in known:
        raise InvalidInput("report", [f"ID: {shutdown}: not in {state_dir}; known are {', '.join(known)}"])
    record = _load_record(journals, known[0] if shutdown is None else shutdown)
    click.echo(_render_record(record, output), nl=False)


def _load_record(journals: "JournalFiles", name: str) -> "ShutdownRecord":
    """The record of the journal's complete lines; damage is reported on standard error."""
    from lastcall.adapters.host.boot import boot_id
    from lastcall.model.shutdown import from_lines
    from lastcall.model.shutdown_fold import finalise_record, fold_events

    lines = journals.read_lines(name)
    events = from_lines(lines)
    if len(events) < len(lines):
        what = f"{name}: line {len(events) + 1} of {len(lines)} cannot be read"
        click.echo(f"lastcall: {what}: this is what stands before it", err=True)
    try:
        record = fold_events(events)
    except ValueError as error:
        raise LastcallError(f"{name}: cannot be reported: {error}") from error
    return record if record.boot_id == boot_id() else finalise_record(record)


def _render_record(record: "ShutdownRecord", output: str) -> str:
    import msgspec

    from lastcall.model.node_shutdown_export import to_node_shutdown
    from lastcall.report.html_report import render_html
    from lastcall.report.text_report import render_text
    from lastcall.report.timeline import build_timeline

    if output == "json":
        return msgspec.json.format(msgspec.json.encode(to_node_shutdown(record)), indent=2).decode() + "\n"
    return render_html(build_timeline(record)) if output == "html" else render_text(build_timeline(record))
