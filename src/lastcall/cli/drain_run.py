"""The execution of ``lastcall drain``: after the plan, the drain itself, until it is over or interrupted."""

import asyncio
import contextlib
import logging
import signal
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import click

from lastcall.cli import cluster_access
from lastcall.cli.drain_surges import keep_surges
from lastcall.cli.drain_traffic import open_drain_traffic
from lastcall.cli.drain_view import DrainView
from lastcall.errors import ApiFailure, LastcallError
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.drain.execution.drain_run import DrainRun
    from lastcall.drain.planning.drain_case import DrainCase
    from lastcall.drain.planning.drain_plan import DrainPlan
    from lastcall.model.drain_facts import PodName
    from lastcall.model.drain_limits import DrainLimits
    from lastcall.model.label_selector import Matcher
    from lastcall.ports.drain import PodEvictions
    from lastcall.ports.node import Clock

log = logging.getLogger(__name__)

INTERRUPTED = 130
"""The exit code after SIGINT or SIGTERM (128 + 2, as a shell has it for Ctrl-C)."""

_DRY_RUN = {"none": "", "client": " (dry run)", "server": " (server dry run)"}
"""What kubectl adds to its lines."""

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
        async with cluster_access.open_client(kubeconfig, context, manager="lastcall-drain") as client:
            if request.dry_run != "none":
                return await _rehearse(client, case, plan, request)
            authority = cluster_access.find_authority(kubeconfig, context)
            return await _run(client, case, plan, request, authority)
    except asyncio.CancelledError:
        if not interrupted:
            raise
        click.echo("interrupted: the nodes stay cordoned, and the same command goes on", err=True)
        return INTERRUPTED


async def _run(client: "Client", case: "DrainCase", plan: "DrainPlan", request: DrainRequest, authority: str) -> int:
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.drain.execution.chosen_pods import make_chooser
    from lastcall.drain.planning.pod_filters import FilterFacts
    from lastcall.wiring.drain import DrainOrder, make_drain_run

    clock = SystemClock()
    view = DrainView(_budget_hints(plan))
    daemon_sets = None
    if case.facts.daemon_sets is not None:
        daemon_sets = {(one.metadata.namespace, one.metadata.name) for one in case.facts.daemon_sets}
    facts = FilterFacts(case.settings, datetime.fromtimestamp(clock.wall(), UTC), daemon_sets)
    order = DrainOrder(
        case.nodes, case.settings, request.limits, request.reason, request.uncordons, request.ignores_owners
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
        async with keep_surges(client, case, run, view, clock, begins=request.surges):
            await run.run()
        if traffic:
            await traffic.wait_until_moved()
    _print_end(run)
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


# -- rehearsals --------------------------------------------------------------------------------------------------------


async def _rehearse(client: "Client", case: "DrainCase", plan: "DrainPlan", request: DrainRequest) -> int:
    """``--dry-run``: says what would be asked for; with ``server`` the API server says how it would answer."""
    ending, asks = _DRY_RUN[request.dry_run], request.dry_run == "server"
    uids = {(pod.metadata.namespace, pod.metadata.name): pod.metadata.uid for pod in case.evicted}
    verb = "deleting" if case.settings.disable_eviction else "evicting"
    failed: list[str] = []
    for node in case.nodes:
        if not node.spec.unschedulable and asks:
            await _ask_cordon(client, node.name)
        already = "already " if node.spec.unschedulable else ""
        click.echo(plain_text(f"node/{node.name} {already}cordoned{ending}"))
    for namespace, name in (pod for tier in plan.evict for pod in tier):
        click.echo(plain_text(f"{verb} pod {namespace}/{name}{ending}"))
        if asks and (error := await _ask_pod(client, case, (namespace, name), uids[namespace, name])):
            failed.append(name)
            click.echo(plain_text(f'error when {verb} pods/"{name}" -n "{namespace}": {error}'), err=True)
    for node in () if failed else case.nodes:
        click.echo(plain_text(f"node/{node.name} drained{ending}"))
    return 1 if failed else 0


async def _ask_cordon(client: "Client", node: str) -> None:
    from lastcall.adapters.kube.resources import NODES

    await client.patch(NODES, node, {"spec": {"unschedulable": True}}, dry_run=True)


async def _ask_pod(client: "Client", case: "DrainCase", pod: "PodName", uid: str) -> LastcallError | None:
    """The answer to a request without effect; None for a success."""
    from lastcall.adapters.kube.resources import PODS

    namespace, name = pod
    grace = case.settings.grace_period
    try:
        if case.settings.disable_eviction:
            await client.delete(PODS, name, namespace=namespace, uid=uid, grace=grace, dry_run=True)
        else:
            await client.evict(name, namespace=namespace, uid=uid, grace=grace, dry_run=True)
    except ApiFailure as error:
        return error
    return None


def list_dry_runs() -> Sequence[str]:
    """The values of ``--dry-run``."""
    return tuple(_DRY_RUN)
