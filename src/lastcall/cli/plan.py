"""``lastcall plan``: answers from files, without a cluster, a bus or a clock."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from lastcall.cli import options
from lastcall.cli.drawing import Row, print_sentence, table_of_numbers
from lastcall.model import duration
from lastcall.model.foreign import plain

if TYPE_CHECKING:
    from rich.console import Console

    from lastcall.graceful.plan import Plan, PlannedPhase

_TITLES = ("  pod", "priority", "asks", "gets", "SIGTERM")


@click.command("plan")
@click.option("--config", required=True, metavar="FILE", help="A KubeletConfiguration or AgentConfiguration.")
@click.option("--pods", required=True, metavar="FILE", help="What kubectl get pods -A -o json (or yaml) gives.")
@click.option("--node", metavar="NAME", help="Only this node's pods; else all scheduled pods count as one node's.")
@click.option(
    "--granted",
    type=options.Duration(endless=True),
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
    from lastcall.adapters.bounded import CONFIG_BYTES
    from lastcall.graceful import config as configuration
    from lastcall.graceful import plan
    from lastcall.model.podfile import read_pods

    options.answering()
    if config == pods == "-":
        raise click.UsageError("only one of --config and --pods can be standard input")
    settings = configuration.read(options.content(config, CONFIG_BYTES), options.source(config))
    found = read_pods(options.content(pods), options.source(pods))
    result = plan.build(settings, found.pods, node=node, granted=granted)
    if output == "json":
        click.echo(plan.to_json(result, found.warnings))
    else:
        _draw(result, found.warnings)


def _draw(result: "Plan", warnings: Sequence[str]) -> None:
    """For people: a heading and a table for each phase, then the warnings."""
    console = options.console()
    if result.enabled:
        most = duration.text(result.total_seconds * duration.SECOND)
        print_sentence(console, f"At most {most} in {_phases(result)}.")
    else:
        print_sentence(console, "Graceful shutdown is disabled: all pods would be cut off at once.")
    for number, phase in enumerate(result.phases, 1):
        click.echo()
        _draw_phase(console, number, phase)
    for warning in (*result.warnings, *warnings):
        click.echo()
        print_sentence(console, f"warning: {plain(warning)}", fg="yellow")


def _draw_phase(console: "Console", number: int, phase: "PlannedPhase") -> None:
    at = f"+{duration.text(phase.start * duration.SECOND)}"
    begins = f"begins at {at} at the latest" if phase.start else "begins at once"
    length = duration.text(phase.seconds * duration.SECOND)
    heading = f"Phase {number}: priority {phase.priority} and above, {length}, {begins}"
    print_sentence(console, heading, bold=True)
    if phase.pods:
        table_of_numbers(console, _TITLES, list(_rows(phase)))
    else:
        print_sentence(console, "  no pods: passed over at once")


def _rows(phase: "PlannedPhase") -> Iterator[Row]:
    from lastcall.graceful.notes import left_for_sigterm
    from lastcall.model.pods import priority

    for planned in phase.pods:
        asked = planned.pod.spec.termination_grace_period_seconds
        cells = (
            str(priority(planned.pod)),
            "-" if asked is None else f"{asked} s",
            f"{planned.seconds} s",
            _term(left_for_sigterm(planned.pod, planned.seconds, phase=planned.phase)),
        )
        yield Row(plain(planned.pod.key), cells, [plain(note) for note in planned.notes])


def _term(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:g} s"


def _phases(result: "Plan") -> str:
    return "1 phase" if len(result.phases) == 1 else f"{len(result.phases)} phases"
