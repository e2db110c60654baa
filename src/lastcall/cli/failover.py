"""``lastcall failover``: what becomes of the pods and volumes of a node that is gone."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lastcall.cli import failover_acknowledge, failover_explain, options
from lastcall.cli.options import TimeParam
from lastcall.cli.tables import print_reason_table, print_sentence
from lastcall.cli.terminal import Terminal, stdout_terminal
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.failover.upstream.plan import FailoverPlan


@click.group("failover")
def command() -> None:
    """What may be forced when a node is gone."""


command.add_command(failover_acknowledge.command)
command.add_command(failover_explain.command)


@command.command("plan")
@click.option("--state", required=True, metavar="FILE", help="A List of Nodes, Pods, VolumeAttachments and others.")
@click.option("--now", type=TimeParam(), metavar="TIME", help="When the state was taken.  [default: the present time]")
@click.option("--upstream-rules", is_flag=True, help="The rules of kube-controller-manager 1.36 as they are.")
@click.option(
    "--terminated-pod-gc-threshold",
    type=int,
    default=12500,
    show_default=True,
    metavar="N",
    help="So many finished pods are kept; 0 or less: all.",
)
@click.option("--quarantine-elapsed", is_flag=True, help="Nodes that are missing have been so for 40 seconds.")
@click.option("--detach-timeout-elapsed", is_flag=True, help="Volumes have been unwanted for 6 minutes.")
@click.option("--disable-force-detach-on-timeout", is_flag=True, help="As that option of kube-controller-manager.")
@click.option("--comparison-operators", is_flag=True, help="Tolerations with Gt and Lt count, a feature that is alpha.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plan_command(
    *,
    state: str,
    now: datetime | None,
    upstream_rules: bool,
    terminated_pod_gc_threshold: int,
    quarantine_elapsed: bool,
    detach_timeout_elapsed: bool,
    disable_force_detach_on_timeout: bool,
    comparison_operators: bool,
    output: str,
) -> None:
    """What one round of the controllers would remove, detach and evict, from a file.

    FILE may be - for standard input: what kubectl get
    nodes,pods,volumeattachments,leases,persistentvolumes -A -o json gives. Exit code 0 whenever there is a plan; 2 if
    the file cannot be read or is wrong.
    """
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.failover.upstream import plan, plan_doubts
    from lastcall.failover.upstream.plan_rules import PlanRules
    from lastcall.model.state_file import read_state

    options.require_stdout()
    source = options.source_name(state)
    found = read_state(options.read_content(state), source)
    moment = now or datetime.fromtimestamp(int(SystemClock().wall()), UTC)
    rules = PlanRules(
        upstream=upstream_rules,
        finished=terminated_pod_gc_threshold,
        quarantine_elapsed=quarantine_elapsed,
        detach_timeout_elapsed=detach_timeout_elapsed,
        force_on_timeout=not disable_force_detach_on_timeout,
        comparisons=comparison_operators,
    )
    result = plan.build_plan(found.snapshot, rules, moment)
    asked = [] if upstream_rules else plan_doubts.list_doubts(result, found.snapshot, moment, given=now is not None)
    for warning in (*found.warnings, *(f"{source}: {one}" for one in asked)):
        click.echo(plain_text(f"warning: {warning}"), err=True)
    if output == "json":
        click.echo(plan.to_json(result))
    else:
        _draw_plan(result, [] if upstream_rules else list(plan.held_back_notes(found.snapshot, rules, moment)))


def _draw_plan(plan: "FailoverPlan", notes: Sequence[str]) -> None:
    """Draws a table for each list, for people."""
    terminal = stdout_terminal()
    removed = [(f"{one.namespace}/{one.name}", one.reason.value) for one in plan.force_delete]
    detached = [(one.volume_attachment, f"{one.reason.value}, from {one.node}") for one in plan.force_detach]
    evicted = [(f"{one.namespace}/{one.name}", f"{one.at:%Y-%m-%dT%H:%M:%SZ}") for one in plan.evict]
    kept = [(f"{one.namespace}/{one.name}", one.why) for one in plan.keep]
    _print_table(terminal, "Deleted by force", removed)
    _print_table(terminal, "Detached by force", detached)
    _print_table(terminal, "Evicted", evicted)
    _print_table(terminal, "Left alone", kept)
    for note in notes:
        click.echo()
        print_sentence(terminal, f"note: {plain_text(note)}", fg="yellow")


def _print_table(terminal: Terminal, title: str, rows: Sequence[tuple[str, str]]) -> None:
    print_sentence(terminal, f"{title}: {len(rows) or 'nothing'}", bold=True)
    if rows:
        print_reason_table(terminal, [(plain_text(name), plain_text(why)) for name, why in rows])
