"""``lastcall controller``: fails over nodes that are gone."""

import asyncio

import click

from lastcall.cli.options import AddressParam, DurationParam
from lastcall.failover.controller.failover_controller import CONCURRENCY
from lastcall.guard.decisions.webhook_withdrawal import DEFAULT_SECONDS, SHORTEST_SECONDS
from lastcall.model.fence_policy import FailoverMode
from lastcall.names import SYSTEM_NAMESPACE


@click.command("controller")
@click.option(
    "--kubeconfig",
    help="The cluster's kubeconfig.  [default: as kubectl finds it, or the pod's own access]",
)
@click.option("--context", help="The context of the kubeconfig.  [default: its current one]")
@click.option(
    "--metrics-bind-address",
    type=AddressParam(),
    default="127.0.0.1:9467",
    show_default=True,
    help="Where /metrics, /healthz and /readyz are served, and /failover to loopback alone; 0 for nowhere.",
)
@click.option(
    "--lease-namespace",
    default=SYSTEM_NAMESPACE,
    show_default=True,
    help="lastcall's own namespace: of the Lease by which one controller of several leads, and of fences' Secrets.",
)
@click.option(
    "--mode",
    type=click.Choice([one.value for one in FailoverMode]),
    default=FailoverMode.ENFORCE.value,
    show_default=True,
    help="The most that is done for any node, whatever its FencePolicy allows.",
)
@click.option(
    "--attach-detach",
    type=click.Choice(["external", "own"]),
    default="external",
    show_default=True,
    help="Who detaches volumes: kube-controller-manager by the taint, or, where its controller is off, lastcall itself.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1000),
    default=CONCURRENCY,
    show_default=True,
    help="Calls to the API server that are under way at a time.",
)
@click.option(
    "--fence-agents",
    "agents",
    multiple=True,
    metavar="DIRECTORY",
    help="Where fence agents are looked for; may be given several times.  [default: /usr/sbin and its like]",
)
@click.option(
    "--guard-withdrawal",
    type=DurationParam(endless="never", least=SHORTEST_SECONDS),
    default=f"{DEFAULT_SECONDS:g}s",
    show_default=True,
    help="After how long without a ready guard its webhooks are withdrawn, until one is ready again; or never.",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="Also tells what is of interest only when something is wrong.")
def command(
    *,
    kubeconfig: str | None,
    context: str | None,
    metrics_bind_address: tuple[str, int] | None,
    lease_namespace: str,
    mode: str,
    attach_detach: str,
    concurrency: int,
    agents: tuple[str, ...],
    guard_withdrawal: float,
    log_format: str,
    verbose: bool,
) -> None:
    """Fails over nodes that are gone: fences them, proves that they are off, and sets their pods and volumes free.

    What is done for which node is said by FencePolicy objects; without one nothing is done. Several controllers may run:
    one of them leads, by a Lease. SIGTERM ends it, and the lease is released.
    """
    from lastcall.adapters.fencing.fence_agent import DIRECTORIES
    from lastcall.adapters.telemetry import logs
    from lastcall.wiring import controller

    logs.configure_logging(as_json=log_format == "json", verbose=verbose)
    settings = controller.ControllerSettings(
        kubeconfig=kubeconfig or "",
        context=context or "",
        metrics=metrics_bind_address,
        namespace=lease_namespace,
        mode=FailoverMode(mode),
        detach=attach_detach == "own",
        concurrency=concurrency,
        agents=agents or DIRECTORIES,
        guard_withdrawal=guard_withdrawal,
    )
    asyncio.run(controller.run_controller(settings))
