"""``lastcall guard run``: holds the deletion of guarded pods until their applications have prepared."""

import asyncio
from ipaddress import IPv4Network, IPv6Network, ip_network

import click

from lastcall.cli import guard_config
from lastcall.cli.options import AddressParam
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.model.pod_creation import MOST_SETTLE_SECONDS


class NetworkParam(click.ParamType[IPv4Network | IPv6Network]):
    """A network such as ``10.0.0.0/8``."""

    name = "network"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> IPv4Network | IPv6Network:
        """The network; fails for anything else."""
        try:
            return ip_network(value)
        except ValueError as error:
            self.fail(f"{value!r} is no network: {error}", param, ctx)


@click.command("run")
@guard_config.option
@click.option(
    "--kubeconfig",
    help="The cluster's kubeconfig.  [default: as kubectl finds it, or the pod's own access]",
)
@click.option("--context", help="The context of the kubeconfig.  [default: its current one]")
@click.option(
    "--webhook-bind-address",
    type=AddressParam(),
    default="0.0.0.0:9443",
    show_default=True,
    help="Where the API server's reviews are answered, over TLS.",
)
@click.option(
    "--metrics-bind-address",
    type=AddressParam(),
    default="127.0.0.1:9468",
    show_default=True,
    help="Where /metrics, /healthz and /readyz are served; 0 for nowhere.",
)
@click.option(
    "--lease-namespace",
    metavar="NAME",
    help="The guard's own namespace: of the Lease by which one guard leads, of the Service, and of the certificate."
    "  [default: as the configuration says]",
)
@click.option(
    "--certificate-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="A DNS name or address of the certificate, besides those of the Service; may be given several times.",
)
@click.option(
    "--allowed-network",
    "networks",
    type=NetworkParam(),
    multiple=True,
    metavar="CIDR",
    help="Addresses that providers may connect to, though they are not those of pods; may be given several times.",
)
@click.option(
    "--client-ca-file",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Authorities (PEM): a client with a certificate of theirs is the API server, as one that knows the secret path.",
)
@click.option(
    "--drain-seconds",
    type=click.FloatRange(0, 300),
    default=10.0,
    show_default=True,
    help="How long reviews are answered after SIGTERM, until no API server sends any more.",
)
@click.option(
    "--eviction-requests",
    type=click.Choice([one.value for one in EvictionRequestMode]),
    default=EvictionRequestMode.OFF.value,
    show_default=True,
    help="Answer EvictionRequests for guarded pods, or run all EvictionRequests of the cluster, too.",
)
@click.option(
    "--settle-seconds",
    type=click.IntRange(0, MOST_SETTLE_SECONDS),
    help="Also answer the webhook that gives new pods a sleep in front of SIGTERM: so long where neither namespace nor pod"
    " gives a number.  [default: no such webhook]",
)
@click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "--verbose", is_flag=True, help="Also tells what is of interest only when something is wrong.")
def command(
    *,
    config: str | None,
    kubeconfig: str | None,
    context: str | None,
    webhook_bind_address: tuple[str, int] | None,
    metrics_bind_address: tuple[str, int] | None,
    lease_namespace: str | None,
    names: tuple[str, ...],
    networks: tuple[IPv4Network | IPv6Network, ...],
    client_ca_file: str | None,
    drain_seconds: float,
    eviction_requests: str,
    settle_seconds: int | None,
    log_format: str,
    verbose: bool,
) -> None:
    """Holds the deletion of guarded pods until their applications have prepared.

    Which pods are guarded, and by what, is said by GuardPolicy objects. Several guards may run: all answer the API server,
    and one of them, by a Lease, prepares. SIGTERM ends it after all requests are answered.
    """
    import importlib.util

    import msgspec

    from lastcall.adapters.telemetry import logs
    from lastcall.errors import LastcallError
    from lastcall.wiring import guard

    if importlib.util.find_spec("cryptography") is None:
        raise LastcallError("certificates need the extra guard: pip install 'lastcall[guard]'")
    if webhook_bind_address is None:
        raise click.BadParameter("must be an address and a port", param_hint="--webhook-bind-address")
    chosen = guard_config.read_config(config)
    if lease_namespace:
        chosen = msgspec.structs.replace(chosen, namespace=lease_namespace)
    logs.configure_logging(as_json=log_format == "json", verbose=verbose)
    settings = guard.GuardSettings(
        kubeconfig=kubeconfig or "",
        context=context or "",
        webhook=webhook_bind_address,
        metrics=metrics_bind_address,
        config=chosen,
        names=names,
        allowed_networks=networks,
        client_ca_file=client_ca_file or "",
        drain_seconds=drain_seconds,
        eviction_requests=EvictionRequestMode(eviction_requests),
        settle_seconds=settle_seconds,
    )
    asyncio.run(guard.run_guard(settings))
