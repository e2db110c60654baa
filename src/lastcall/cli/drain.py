"""``lastcall drain``: empties nodes, after it has said what stands in the way; with ``--plan`` it says only that."""

import asyncio
import difflib
import gc
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from lastcall.cli import cluster_access, options
from lastcall.cli.options import DurationParam, TimeParam
from lastcall.errors import InvalidInput
from lastcall.model.decoding import quote_value
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.drain.planning.drain_plan import DrainPlan
    from lastcall.model.drain_facts import DrainNode
    from lastcall.model.drain_state_file import DrainState
    from lastcall.model.label_selector import Matcher


@click.command("drain")
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=cluster_access.complete_node)
@click.option("-l", "--selector", metavar="SELECTOR", help="Nodes with these labels, in place of names.")
@click.option("--pod-selector", metavar="SELECTOR", help="Only pods with these labels.")
@click.option("--plan", is_flag=True, help="Say what would happen; nothing is evicted.")
@click.option("--state", metavar="FILE", help="A List of Nodes, Pods and others; no cluster is asked.")
@click.option("--now", type=TimeParam(), metavar="TIME", help="When the state was taken.  [default: the present time]")
@click.option("--force", is_flag=True, help="Also pods without a controller.")
@click.option("--ignore-daemonsets", is_flag=True, help="Leave pods of DaemonSets where they are.")
@click.option("--delete-emptydir-data", is_flag=True, help="Also pods with emptyDir volumes, whose data is lost.")
@click.option("--disable-eviction", is_flag=True, help="Delete pods, which no PodDisruptionBudget holds.")
@click.option(
    "--grace-period",
    type=int,
    default=-1,
    show_default=True,
    metavar="SECONDS",
    help="For each pod to end; negative: the pod's own.",
)
@click.option(
    "--chunk-size",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    metavar="NUMBER",
    help="So many objects of a list are read at a time; 0: all.",
)
@click.option(
    "--skip-wait-for-delete-timeout",
    type=int,
    default=0,
    show_default=True,
    metavar="SECONDS",
    help="Pass over pods that have been deleted for longer; 0: none.",
)
@click.option(
    "--timeout",
    type=DurationParam(),
    default="0s",
    show_default=True,
    metavar="DURATION",
    help="The time for the whole drain; 0: no end.",
)
@click.option(
    "--on-timeout",
    type=click.Choice(["stop", "delete", "force"]),
    default="stop",
    show_default=True,
    help="What then happens to pods that are left: give up, delete them past budgets, or end them within a second.",
)
@click.option(
    "--pod-timeout",
    type=DurationParam(),
    default="0s",
    show_default=True,
    metavar="DURATION",
    help="The time for each pod, after which the same happens to it; 0: no end.",
)
@click.option("--uncordon-on-failure", is_flag=True, help="A drain that fails takes its own cordon back.")
@click.option(
    "--dry-run",
    type=click.Choice(["none", "client", "server"]),
    default="none",
    show_default=True,
    help="Only say what would be asked for; server: and how the API server would answer.",
)
@click.option("--reason", metavar="TEXT", help="Why; others who want the node are told so.")
@click.option("--surge", is_flag=True, help="Where a budget lets no pod go: one more pod of its workload for a time.")
@click.option("--eviction-requests", is_flag=True, help="Evict by EvictionRequests, where they are served (alpha).")
@click.option("--ignore-owners", is_flag=True, help="Also nodes on which another program works.")
@click.option("--ignore-traffic", is_flag=True, help="Do not wait until no proxy sends requests to the pods.")
@click.option(
    "--settle-time",
    type=DurationParam(),
    metavar="DURATION",
    help="So long proxies need that do not tell.  [default: learnt]",
)
@click.option(
    "--exclude-from-load-balancers",
    type=click.Choice(["label", "taint"]),
    multiple=True,
    help="Tell external load balancers that the nodes leave; may be repeated.",
)
@click.option("--ignore-opt-outs", is_flag=True, help="Also what other tools are told to leave alone.")
@cluster_access.cluster_options
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def command(
    ctx: click.Context,
    *,
    nodes: tuple[str, ...],
    selector: str | None,
    pod_selector: str | None,
    plan: bool,
    state: str | None,
    now: datetime | None,
    force: bool,
    ignore_daemonsets: bool,
    delete_emptydir_data: bool,
    disable_eviction: bool,
    grace_period: int,
    chunk_size: int,
    skip_wait_for_delete_timeout: int,
    timeout: float,
    on_timeout: str,
    pod_timeout: float,
    uncordon_on_failure: bool,
    dry_run: str,
    reason: str | None,
    surge: bool,
    eviction_requests: bool,
    ignore_owners: bool,
    ignore_traffic: bool,
    settle_time: float | None,
    exclude_from_load_balancers: tuple[str, ...],
    ignore_opt_outs: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Empties nodes: cordons them, and evicts their pods in tiers, of which each waits for the one before it.

    The options that kubectl drain has mean the same. Nothing is evicted if a pod is refused. Budgets and guards that
    block are waited for. Ctrl-C ends in order; the same command goes on.

    With --plan: what would go, in which order and how long it takes, and what stands in the way. FILE may be - for
    standard input: what kubectl get nodes,pods,daemonsets,poddisruptionbudgets,... -A -o json gives.

    Exit code 0 if the nodes are drained, or with --plan if nothing stands in the way; 1 if not, or if the cluster does
    not answer; 2 if there is no such node, or a file or an option is wrong; 130 after Ctrl-C.
    """
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.drain.planning.drain_case import build_case
    from lastcall.drain.planning.drain_plan import build_plan
    from lastcall.model.drain_settings import DrainSettings

    options.require_stdout()
    _check_usage(nodes, selector, plan=plan, state=state, asks_cluster=bool(kubeconfig or context))
    if eviction_requests and (disable_eviction or grace_period >= 0):
        raise click.UsageError(
            "an EvictionRequest has no grace period, and is an eviction: --eviction-requests "
            "cannot stand beside --grace-period or --disable-eviction"
        )
    if on_timeout != "stop" and not (timeout or pod_timeout):
        raise click.UsageError(f"--on-timeout {on_timeout} needs a time: give --timeout or --pod-timeout")
    if output == "json" and not plan:
        raise click.UsageError("--output json is for the plan: add --plan, or leave it out")
    settings = DrainSettings(
        force=force,
        ignore_daemonsets=ignore_daemonsets,
        delete_emptydir_data=delete_emptydir_data,
        disable_eviction=disable_eviction,
        grace_period=grace_period if grace_period >= 0 else None,
        skip_wait_for_delete_timeout=skip_wait_for_delete_timeout,
        ignore_opt_outs=ignore_opt_outs,
        surge=surge,
    )
    chosen, wanted = _read_selector("--selector", selector or ""), _read_selector("--pod-selector", pod_selector or "")
    gc.disable()  # a file of 5,000 pods makes a million objects, and none of them is garbage
    try:
        access = kubeconfig, context, chunk_size
        found = _read_state(state) if state else asyncio.run(_read_cluster(*access, drains=not plan))
        names = _choose_nodes(nodes, found.facts.nodes, chosen if selector else None)
        moment = now or datetime.fromtimestamp(SystemClock().wall(), UTC)
        case = build_case(found.facts, names, settings, moment, wanted)
        result = build_plan(case)
    finally:
        gc.enable()
    if not plan and names:
        from lastcall.cli.drain_run import DrainRequest, execute_drain
        from lastcall.model.balancer_marks import BalancerMark
        from lastcall.model.drain_limits import DrainLimits, TimeoutPolicy

        limits = DrainLimits(timeout=timeout, pod_timeout=pod_timeout, on_timeout=TimeoutPolicy(on_timeout))
        request = DrainRequest(
            limits,
            wanted,
            reason=reason or "",
            uncordons=uncordon_on_failure,
            ignores_owners=ignore_owners,
            dry_run=dry_run,
            ignores_traffic=ignore_traffic,
            settle=settle_time,
            surges=surge,
            requests_evictions=eviction_requests,
            balancers=tuple(map(BalancerMark, exclude_from_load_balancers)),
        )
        ctx.exit(execute_drain(case, result, request, kubeconfig, context))
    if not state and not ignore_traffic:
        from lastcall.cli.drain_traffic import learn_sleep_notes

        learnt = asyncio.run(learn_sleep_notes(case, kubeconfig, context, settle_time))
        result = replace(result, notes=(*result.notes, *learnt))
    _print_plan(result, found.warnings, output)
    ctx.exit(0 if result.is_clear else 1)


def _check_usage(
    nodes: Sequence[str], selector: str | None, *, plan: bool, state: str | None, asks_cluster: bool
) -> None:
    """Raises UsageError for options that contradict each other or are missing."""
    if nodes and selector:
        raise click.UsageError("cannot specify both a node name and a --selector option")
    if not nodes and not selector:
        raise click.UsageError("Missing argument 'NODE' or option '--selector': which nodes?")
    if state and asks_cluster:
        raise click.UsageError("--state asks no cluster: leave --kubeconfig and --context out")
    if state and not plan:
        raise click.UsageError("--state asks no cluster, so it needs --plan")


def _read_selector(option: str, text: str) -> "Matcher":
    from lastcall.model.label_query import parse_label_query
    from lastcall.model.label_selector import build_matcher

    try:
        return build_matcher(parse_label_query(text))
    except ValueError as error:
        raise InvalidInput(option, [f"{quote_value(text)}: must be a valid label selector: {error}"]) from error


def _read_state(path: str) -> "DrainState":
    from lastcall.model.drain_state_file import read_drain_state

    return read_drain_state(options.read_content(path), options.source_name(path))


async def _read_cluster(kubeconfig: str | None, context: str | None, page: int, *, drains: bool) -> "DrainState":
    from lastcall.adapters.kube.drain_facts import DrainFactsReader

    async with cluster_access.open_client(kubeconfig, context, manager="lastcall-drain", drains=drains) as client:
        return await DrainFactsReader(client, page=page).read()


def _choose_nodes(names: Sequence[str], nodes: "Sequence[DrainNode]", chosen: "Matcher | None") -> list[str]:
    """The names of the nodes: those that are given, in their order, or those that the selector chooses, by name.

    InvalidInput lists the names without a node.
    """
    if chosen is not None:
        return sorted(node.name for node in nodes if chosen(node.metadata.labels or {}))
    known = {node.name for node in nodes}
    given = list(dict.fromkeys(name.removeprefix("nodes/").removeprefix("node/") for name in names))
    missing = [_missing_node(name, known) for name in given if name not in known]
    if missing:
        raise InvalidInput("NODE", missing)
    return given


def _missing_node(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known)
    meant = f"similar: {', '.join(near)}" if near else "kubectl get nodes lists them"
    return f"{quote_value(name)}: there is no such node; {meant}"


def _print_plan(plan: "DrainPlan", warnings: Sequence[str], output: str) -> None:
    from lastcall.drain.planning.drain_plan import plan_document

    notes = [f"{note.text} ({note.mend})" for note in plan.notes]
    for warning in (*warnings, *(notes if output == "json" else ())):
        click.echo(plain_text(f"warning: {warning}"), err=True)
    if output == "json":
        click.echo(json.dumps(plan_document(plan), indent=2, ensure_ascii=False))
    else:
        from lastcall.cli.drain_table import draw_plan

        draw_plan(plan, notes)
