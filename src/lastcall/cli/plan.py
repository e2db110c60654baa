"""``lastcall plan``: answers from files, or for a node of a cluster; without a bus or a clock."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from lastcall.cli import cluster_access, options
from lastcall.cli.tables import TableRow, print_number_table, print_sentence
from lastcall.cli.terminal import Terminal, stdout_terminal
from lastcall.model import duration
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.graceful.config import AgentConfig
    from lastcall.graceful.planning.node_checks import NodeChecks
    from lastcall.graceful.planning.shutdown_plan import PlannedPhase, ShutdownPlan

_TITLES = ("  pod", "priority", "asks", "gets", "SIGTERM")


@click.command("plan")
@click.option(
    "--config",
    metavar="FILE",
    help="A KubeletConfiguration or AgentConfiguration.  [default: the ConfigMap of the installed agents]",
)
@click.option(
    "--pods",
    metavar="FILE",
    help="What kubectl get pods -A -o json (or yaml) gives.  [default: the node's, from the cluster]",
)
@click.option(
    "--node",
    metavar="NAME",
    shell_complete=cluster_access.complete_node,
    help="Only this node's pods; with --pods alone, all scheduled pods count as one node's.",
)
@click.option(
    "--granted",
    type=options.DurationParam(endless="infinity"),
    default="infinity",
    show_default=True,
    metavar="DURATION",
    help="How long logind would wait, such as 30s.",
)
@cluster_access.cluster_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(
    *,
    config: str | None,
    pods: str | None,
    node: str | None,
    granted: float,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Which pods would be ended when, and with how much time.

    With --pods from files; with --node alone from the cluster, which is not changed. From the cluster the plan also warns
    of CSI drivers, network plugins and DNS that end before the pods that need them, and says what to mend.

    FILE may be - for standard input, once. Exit code 0 whenever there is a plan, also if graceful shutdown is disabled
    or there are warnings; 1 if the cluster does not answer; 2 if a file or a name is wrong.
    """
    options.require_stdout()
    if pods:
        if not config:
            raise click.UsageError("Missing option '--config': with --pods it is required.")
        if kubeconfig or context:
            raise click.UsageError("--pods asks no cluster: leave --kubeconfig and --context out")
        result = _plan_from_files(config, pods, node, granted)
    elif node:
        result = asyncio.run(_plan_from_cluster(config, node, granted, kubeconfig, context))
    else:
        raise click.UsageError("Missing option '--pods' or '--node': which pods?")
    if output == "json":
        click.echo(result.to_json())
    else:
        _draw_plan(result)


class _Answer(NamedTuple):
    """A plan, and what the pods' source adds: ``checks`` if that is a cluster."""

    plan: "ShutdownPlan"
    warnings: Sequence[str]
    checks: "NodeChecks | None" = None

    def to_json(self) -> bytes:
        from lastcall.graceful.planning import shutdown_plan

        if not self.checks:
            return shutdown_plan.to_json(self.plan, self.warnings)
        return shutdown_plan.to_json(
            self.plan, self.warnings, more=self.checks.to_fields(), sources=self.checks.priority_sources
        )


def _plan_from_files(config: str, pods: str, node: str | None, granted: float) -> _Answer:
    from lastcall.graceful.planning import shutdown_plan
    from lastcall.model.pod_file import read_pods

    if config == pods == "-":
        raise click.UsageError("only one of --config and --pods can be standard input")
    settings = _read_config(config)
    found = read_pods(options.read_content(pods), options.source_name(pods))
    return _Answer(shutdown_plan.build_plan(settings, found.pods, node=node, granted=granted), found.warnings)


def _read_config(path: str) -> "AgentConfig":
    from lastcall.adapters.host.bounded_reads import CONFIG_BYTES
    from lastcall.graceful import config as configuration

    return configuration.parse_config(options.read_content(path, CONFIG_BYTES), options.source_name(path))


async def _plan_from_cluster(
    config: str | None, node: str, granted: float, kubeconfig: str | None, context: str | None
) -> _Answer:
    from lastcall.adapters.kube.node_pods import NodePodsReader, read_agent_config
    from lastcall.graceful import config as configuration
    from lastcall.graceful.planning.node_checks import check_node

    given = _read_config(config) if config else None
    async with cluster_access.open_client(kubeconfig, context, manager="lastcall-plan") as client:
        found = await NodePodsReader(client, node).read()
        if not given:
            source, data = await read_agent_config(client)
            given = configuration.parse_config(data, source)
    checks = check_node(given, found, node, granted)
    return _Answer(checks.plan, found.warnings, checks)


def _draw_plan(answer: _Answer) -> None:
    """Draws a heading and a table for each phase, then the warnings, for people."""
    terminal, result = stdout_terminal(), answer.plan
    if result.enabled:
        most = duration.format_duration(result.total_seconds * duration.SECOND)
        print_sentence(terminal, f"At most {most} in {_phase_count(result)}.")
    else:
        print_sentence(terminal, "Graceful shutdown is disabled: all pods would be cut off at once.")
    for number, phase in enumerate(result.phases, 1):
        click.echo()
        _draw_phase(terminal, number, phase)
    for sentence in answer.checks.sentences if answer.checks else ():
        click.echo()
        print_sentence(terminal, plain_text(sentence))
    inversions = answer.checks.inversion_texts if answer.checks else ()
    for warning in (*result.warnings, *answer.warnings, *inversions):
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
