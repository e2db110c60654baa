"""``lastcall drill``: a rehearsal of a node's shutdown on the living machine."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastcall.cli import cluster_access, options
from lastcall.cli.agent_pod import run_in_agent_pod
from lastcall.cli.doctor import print_report
from lastcall.cli.tables import TableRow, print_number_table, print_sentence
from lastcall.cli.terminal import stdout_terminal
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.doctor.finding import Check
    from lastcall.wiring.drill import DrillResult

_TITLES = ("  pod", "priority", "source", "asks", "gets")


@click.command("drill")
@click.argument("node", required=False, shell_complete=cluster_access.complete_node)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    default=options.STATE_DIR,
    show_default=True,
    help="Without NODE: the state directory of the agent that runs here.",
)
@cluster_access.cluster_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    node: str | None,
    state_dir: Path,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """A rehearsal: what a shutdown of NODE would do now, and what would hold it up. Nothing is ended or changed.

    With NODE it runs, by kubectl exec, in the pod of the node's agent. Without NODE it runs here, beside the agent of this
    machine, as root; so it is for agents that systemd runs. A real shutdown ends it at once.

    Exit code 1 if a check fails (warnings do not count), if no agent runs, or if the machine shuts down; 2 if there is no
    such node.
    """
    options.require_stdout()
    if node:
        ctx.exit(run_in_agent_pod(node, ["drill", f"--output={output}"], kubeconfig, context))
    if kubeconfig or context:
        raise click.UsageError("--kubeconfig and --context say where NODE is: it is not given")
    ctx.exit(_drill_here(state_dir, output))


def _drill_here(state_dir: Path, output: str) -> int:
    from lastcall.adapters.host.low_priority import yield_to_others
    from lastcall.cli.running_agent import find_running_agent
    from lastcall.doctor.all_checks import build_report
    from lastcall.doctor.drill_checks import run_drill_checks
    from lastcall.wiring.drill import run_drill

    yield_to_others()
    result = asyncio.run(run_drill(find_running_agent(state_dir)))
    checks = run_drill_checks(result.facts)
    if output == "json":
        click.echo(_to_json(result, checks))
    else:
        _draw_result(result, checks)
    return 1 if build_report(checks).failures else 0


def _to_json(result: "DrillResult", checks: "Sequence[Check]") -> bytes:
    import msgspec

    from lastcall.doctor.all_checks import build_report
    from lastcall.model.node_shutdown_export import to_node_shutdown

    report = build_report(checks)
    sources = {live.pod.key: live.priority_source.value for live in result.pods.values()}
    document = {
        "node": result.facts.record.node,
        "shutdown": to_node_shutdown(result.facts.record),
        "prioritySources": sources,
        "checks": report.checks,
        "failures": report.failures,
        "warnings": report.warnings,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=2)


def _draw_result(result: "DrillResult", checks: "Sequence[Check]") -> None:
    from lastcall.doctor.all_checks import build_report
    from lastcall.report.drill_text import head_lines, phase_title

    terminal, record = stdout_terminal(), result.facts.record
    print_sentence(terminal, f"A drill of node {plain_text(record.node)}: nothing was ended or changed.", bold=True)
    click.echo("\n" + "".join(f"  {line}\n" for line in head_lines(record)))
    for index in range(len(record.phases)):
        print_sentence(terminal, phase_title(record, index), bold=True)
        if rows := list(_pod_rows(result, index)):
            print_number_table(terminal, _TITLES, rows)
        click.echo()
    for note in record.notes:
        print_sentence(terminal, f"note: {plain_text(note.text)}", fg="yellow")
    print_report(build_report(checks))


def _pod_rows(result: "DrillResult", index: int) -> Iterator[TableRow]:
    from lastcall.graceful.planning.termination_notes import notes_for_pod
    from lastcall.report.drill_text import phase_seconds

    record = result.facts.record
    for pod in sorted((pod for pod in record.pods if pod.phase == index), key=lambda one: (one.namespace, one.name)):
        live = result.pods[pod.uid]
        cells = (str(pod.priority), live.priority_source.value, f"{pod.asked} s", f"{pod.grace:g} s")
        notes = notes_for_pod(live.pod, int(pod.grace), phase=int(phase_seconds(record, index)))
        yield TableRow(plain_text(live.pod.key), cells, [plain_text(note) for note in notes])
