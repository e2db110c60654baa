"""The execution of ``lastcall drain``: after the plan, the drain itself, until it is over or interrupted."""

import asyncio
import contextlib
import logging
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import click

from lastcall.cli import cluster_access
from lastcall.cli.drain_rehearsal import rehearse_drain
from lastcall.cli.drain_traffic import open_drain_traffic
from lastcall.cli.drain_view import DrainView
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.drain.execution.drain_run import DrainRun
    from lastcall.drain.planning.drain_case import DrainCase
    from lastcall.drain.planning.drain_plan import DrainPlan
    from lastcall.model.balancer_marks import BalancerMark
    from lastcall.model.drain_facts import PodName
    from lastcall.model.drain_limits import DrainLimits
    from lastcall.model.label_selector import Matcher
    from lastcall.ports.drain import PodEvictions
    from lastcall.ports.node import Clock

log = logging.getLogger(__name__)

INTERRUPTED = 130
"""The exit code after SIGINT or SIGTERM (128 + 2, as a shell has it for Ctrl-C)."""

_TICK = 1.0
"""Seconds between two pictures of the live view while nothing happens."""


class DrainRequest(NamedTuple):
    """What the command line asks for, beside the case."""

    limits: "DrainLimits"
    selects: "Matcher"
    reason: str = ""
    uncordons: bool = False
    ignores_owners: bool = False
    dry_run: str = "none"
    ignores_traffic: bool = False
    settle: float | None = None
    """The settle time in seconds; None: it is learnt."""
    surges: bool = False
    requests_evictions: bool = False
    """By EvictionRequests, where they are served."""
    balancers: "Collection[BalancerMark]" = ()
    """What tells external load balancers that the nodes leave."""


def execute_drain(
    case: "DrainCase", plan: "DrainPlan", request: DrainRequest, kubeconfig: str | None, context: str | None
) -> int:
    """Drains the nodes of the case, and returns the exit code. Nothing happens if the plan refuses a pod."""
    _print_warnings(case)
    if stops := [*_list_refusals(case), *([] if request.ignores_owners else _list_owners(case))]:
        for text in stops:
            click.echo(plain_text(f"error: {text}"), err=True)
        click.echo("Nothing was evicted.", err=True)
        return 1
    for obstacle in plan.blocked:
        by = f"{obstacle.by.kind} {'/'.join(filter(None, (obstacle.by.namespace, obstacle.by.name)))}"
        click.echo(plain_text(f"Warning: {by} blocks: {obstacle.why}; mend: {obstacle.mend}"), err=True)
    if request.surges:
        print_missing_room(case)
    return asyncio.run(_run_until_signal(case, plan, request, kubeconfig, context))


# -- before ------------------------------------------------------------------------------------------------------------


def _print_warnings(case: "DrainCase") -> None:
    """The warnings of kubectl, in its words (``PodDeleteList.Warnings``)."""
    from lastcall.drain.planning.pod_filters import DAEMON_SET_WARNING, FilterFate

    pods: dict[str, list[str]] = defaultdict(list)
    for one in case.judged:
        why = one.verdict.why
        if why and (one.verdict.fate is FilterFate.EVICT or why == DAEMON_SET_WARNING):
            pods[why].append(one.pod.key)
    if pods:
        said = "; ".join(f"{why}: {', '.join(names)}" for why, names in pods.items())
        click.echo(plain_text(f"Warning: {said}"), err=True)


def print_missing_room(case: "DrainCase") -> None:
    """The additional pod of a surge would wait for ever, and the drain with it."""
    from lastcall.drain.planning.room_elsewhere import list_room_notes

    for note in list_room_notes(case):
        click.echo(plain_text(f"Warning: {note.text} ({note.mend})"), err=True)


def _list_refusals(case: "DrainCase") -> Iterator[str]:
    """The errors of kubectl, in its words (``PodDeleteList.errors``)."""
    from lastcall.drain.planning.pod_filters import FilterFate

    pods: dict[str, list[str]] = defaultdict(list)
    for one in case.judged:
        if one.verdict.fate is FilterFate.REFUSE:
            pods[one.verdict.why.removeprefix("cannot delete ")].append(one.pod.key)
    for why, names in pods.items():
        yield f"cannot delete {why}: {', '.join(names)}"


def _list_owners(case: "DrainCase") -> Iterator[str]:
    from lastcall.adapters.kube.drain_cluster import COMPONENT
    from lastcall.drain.planning.foreign_owners import list_active_owners

    for text in list_active_owners(case, COMPONENT):
        yield f"{text}: leave the node to it, or use --ignore-owners"


# -- the run -----------------------------------------------------------------------------------------------------------


async def _run_until_signal(
    case: "DrainCase", plan: "DrainPlan", request: DrainRequest, kubeconfig: str | None, context: str | None
) -> int:
    """The exit code. A first signal ends the run in order, a second one at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    interrupted = False

    def end(number: signal.Signals) -> None:
        nonlocal interrupted
        interrupted = True
        loop.remove_signal_handler(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    try:
        async with cluster_access.open_client(kubeconfig, context, manager="lastcall-drain", drains=True) as client:
            if request.dry_run != "none":
                return await rehearse_drain(client, case, plan, request.dry_run)
            authority = cluster_access.find_authority(kubeconfig, context)
            return await _run(client, case, plan, request, authority)
    except asyncio.CancelledError:
        if not interrupted:
            raise
        click.echo("interrupted: the nodes stay cordoned, and the same command goes on", err=True)
        return INTERRUPTED


async def _run(client: "Client", case: "DrainCase", plan: "DrainPlan", request: DrainRequest, authority: str) -> int:
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.adapters.kube.surge_cluster import KubeSurgeCluster
    from lastcall.drain.execution.chosen_pods import make_chooser
    from lastcall.drain.execution.kept_surges import keep_surges
    from lastcall.drain.planning.pod_filters import FilterFacts
    from lastcall.wiring.drain import DrainOrder, make_drain_run

    clock = SystemClock()
    view = DrainView(_budget_hints(plan))
    daemon_sets = None
    if case.facts.daemon_sets is not None:
        daemon_sets = {(one.metadata.namespace, one.metadata.name) for one in case.facts.daemon_sets}
    facts = FilterFacts(case.settings, datetime.fromtimestamp(clock.wall(), UTC), daemon_sets)
    order = DrainOrder(
        case.nodes,
        case.settings,
        request.limits,
        request.reason,
        request.uncordons,
        request.ignores_owners,
        request.balancers,
    )
    choose = make_chooser(facts, case.facts.dns, request.selects)
    async with contextlib.AsyncExitStack() as opened:
        opened.enter_context(_show_warnings(view))
        await opened.enter_async_context(_redraw(view))
        traffic = None
        if not request.ignores_traffic:
            traffic = await opened.enter_async_context(
                open_drain_traffic(client, case, view, clock, authority=authority, settle=request.settle)
            )
        observer = traffic.observer if traffic else view
        evictions = None
        if request.requests_evictions:
            evictions = await opened.enter_async_context(_open_requests(client, clock))
        run = make_drain_run(client, order, choose=choose, observer=observer, clock=clock, evictions=evictions)
        surges = KubeSurgeCluster(client)
        async with keep_surges(surges, case, run, view.say, clock, begins=request.surges) as put_back:
            await run.run(before_release=put_back)
        if traffic:
            await traffic.wait_until_moved()
    _print_end(run)
    if request.balancers:
        _print_excluded(run)
    return 1 if run.has_failed else 0


@contextlib.asynccontextmanager
async def _open_requests(client: "Client", clock: "Clock") -> "AsyncIterator[PodEvictions | None]":
    """Evictions by EvictionRequests; None, with a warning, where they are not served."""
    from lastcall.adapters.kube.drain_cluster import COMPONENT, KubeDrainCluster
    from lastcall.wiring.eviction_requests import open_requested_evictions

    direct = KubeDrainCluster(client, clock, COMPONENT)
    async with open_requested_evictions(client, direct, clock, Random()) as evictions:  # noqa: S311 - spreads retries
        if evictions is None:
            log.warning("the API server does not serve EvictionRequests: pods are evicted by the Eviction API")
        yield evictions


@contextlib.contextmanager
def _show_warnings(view: DrainView) -> Iterator[None]:
    """Shows what the parts of the drain log as a warning: a Lease that is waited for, an API server that is away."""

    class Shown(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            view.warn(record.getMessage())

    handler, logger = Shown(logging.WARNING), logging.getLogger("lastcall")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.asynccontextmanager
async def _redraw(view: DrainView) -> AsyncIterator[None]:
    """Keeps the live view going meanwhile, and takes it away at the end."""
    from lastcall.aio import cancel_and_wait

    async def tick() -> None:
        while True:
            await asyncio.sleep(_TICK)
            view.tick(_TICK)

    ticking = asyncio.create_task(tick(), name="redraw")
    try:
        yield
    finally:
        await cancel_and_wait(ticking)
        view.close()


def _budget_hints(plan: "DrainPlan") -> "dict[PodName, str]":
    """For each pod that several budgets cover, their names and the mend."""
    found: dict[PodName, str] = {}
    for one in plan.blocked:
        if one.by.kind == "PodDisruptionBudget":
            for pod in one.pods:
                text = f"PodDisruptionBudget {one.by.namespace}/{one.by.name}: {one.why}; mend: {one.mend}"
                found.setdefault(pod, text)
    return found


def _print_end(run: "DrainRun") -> None:
    """What is left, in the words of kubectl."""
    course = run.course
    failed = [node for node in course.nodes if node.outcome is None or node.outcome.value != "drained"]
    for node in failed:
        pods = [pod for pod in course.pods or () if pod.target.node == node.name and course.is_here(pod)]
        if pods:
            click.echo(plain_text(f'There are pending pods in node "{node.name}" when an error occurred:'), err=True)
            for pod in pods:
                click.echo(plain_text(f"pod/{pod.target.name}: {pod.failure}"), err=True)
    if failed:
        click.echo("There are pending nodes to be drained:", err=True)
        for node in failed:
            click.echo(plain_text(f" {node.name}"), err=True)


def _print_excluded(run: "DrainRun") -> None:
    """Who gives the nodes back to external load balancers."""
    drained = [node.name for node in run.course.nodes if node.outcome is not None and node.outcome.value == "drained"]
    if drained:
        nodes = ", ".join(drained)
        click.echo(
            plain_text(
                f"{nodes}: external load balancers leave it out until it is uncordoned; then lastcall controller takes "
                "back what this drain has set"
            ),
            err=True,
        )
