"""``lastcall plan``: answers from files, without a cluster, a bus or a clock."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lastcall.cli import options
from lastcall.cli.tables import TableRow, print_number_table, print_sentence
from lastcall.cli.terminal import Terminal, stdout_terminal
from lastcall.model import duration
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.graceful.planning.shutdown_plan import PlannedPhase, ShutdownPlan

_TITLES = ("  pod", "priority", "asks", "gets", "SIGTERM")


@click.command("plan")
@click.option("--config", required=True, metavar="FILE", help="A KubeletConfiguration or AgentConfiguration.")
@click.option("--pods", required=True, metavar="FILE", help="What kubectl get pods -A -o json (or yaml) gives.")
@click.option("--node", metavar="NAME", help="Only this node's pods; else all scheduled pods count as one node's.")
@click.option(
    "--granted",
    type=options.DurationParam(endless=True),
    default="infinity",
    show_default=True,
    metavar="DURATION",
    help="How long logind would wait, such as 30s.",
)
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(config: str, pods: str, node: str | None, granted: float, output: str) -> None:
    """Which pods would be ended when, and with how much time.

    FILE may be - for standard input, once. Exit code 0 whenever there is a plan, also if graceful shutdown is disabled
    or there are warnings; 2 if a file cannot be read or is wrong.
    """
    from lastcall.adapters.host.bounded_reads import CONFIG_BYTES
    from lastcall.graceful import config as configuration
    from lastcall.graceful.planning import shutdown_plan
    from lastcall.model.pod_file import read_pods

    options.require_stdout()
    if config == pods == "-":
        raise click.UsageError("only one of --config and --pods can be standard input")
    settings = configuration.parse_config(options.read_content(config, CONFIG_BYTES), options.source_name(config))
    found = read_pods(options.read_content(pods), options.source_name(pods))
    result = shutdown_plan.build_plan(settings, found.pods, node=node, granted=granted)
    if output == "json":
        click.echo(shutdown_plan.to_json(result, found.warnings))
    else:
        _draw_plan(result, found.warnings)


def _draw_plan(result: "ShutdownPlan", warnings: Sequence[str]) -> None:
    """Draws a heading and a table for each phase, then the warnings, for people."""
    terminal = stdout_terminal()
    if result.enabled:
        most = duration.format_duration(result.total_seconds * duration.SECOND)
        print_sentence(terminal, f"At most {most} in {_phase_count(result)}.")
    else:
        print_sentence(terminal, "Graceful shutdown is disabled: all pods would be cut off at once.")
    for number, phase in enumerate(result.phases, 1):
        click.echo()
        _draw_phase(terminal, number, phase)
    for warning in (*result.warnings, *warnings):
        click.echo()
        print_sentence(terminal, f"warning: {plain_text(warning)}", fg="yellow")


def _draw_phase(terminal: Terminal, number: int, phase: "PlannedPhase") -> None:
    at = f"+{duration.format_duration(phase.start * duration.SECOND)}"
    begins = f"begins at {at} at the latest" if phase.start else "begins at once"
    length = duration.format_duration(phase.seconds * duration.SECOND)
    heading = f"Phase {number}: priority {phase.priority} and above, {length}, {begins}"
    print_sentence(terminal, heading, bold=True)
    if phase.pods:
        print_number_table(terminal, _TITLES, list(_pod_rows(phase)))
    else:
        print_sentence(terminal, "  no pods: passed over at once")


def _pod_rows(phase: "PlannedPhase") -> Iterator[TableRow]:
    from lastcall.graceful.planning.termination_notes import sigterm_seconds
    from lastcall.model.pods import asked_grace, pod_priority

    for planned in phase.pods:
        asked = asked_grace(planned.pod)
        cells = (
            str(pod_priority(planned.pod)),
            "-" if asked is None else f"{asked} s",
            f"{planned.seconds} s",
            _sigterm_text(sigterm_seconds(planned.pod, planned.seconds, phase=planned.phase)),
        )
        yield TableRow(plain_text(planned.pod.key), cells, [plain_text(note) for note in planned.notes])


def _sigterm_text(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:g} s"


def _phase_count(result: "ShutdownPlan") -> str:
    return "1 phase" if len(result.phases) == 1 else f"{len(result.phases)} phases"
