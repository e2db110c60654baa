"""``lastcall agent``: ends this node's pods in order when the machine shuts down."""

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from lastcall.cli import options

if TYPE_CHECKING:
    from lastcall.wiring.agent import AgentSettings


_SERVICE = re.compile(r"[A-Za-z0-9:_.\\@-]{1,247}\.service")


def _validate_service(_: click.Context, __: click.Parameter, value: str) -> str:
    """Checks that the value is the name of a service, by the rule of systemd.unit(5), or ""."""
    if value and not _SERVICE.fullmatch(value):
        raise click.BadParameter(f'{value!r} is not the name of a service, such as kubelet.service, nor "" for none')
    return value


@click.command("agent")
@options.agent_options
@options.endpoint
@click.option(
    "--kubelet-unit",
    callback=_validate_service,
    default="kubelet.service",
    show_default=True,
    help='The unit that is stopped first, since it would start again what is ended; "" for none.',
)
@click.option(
    "--kubelet-root-dir",
    type=click.Path(path_type=str),
    default="/var/lib/kubelet",
    show_default=True,
    help="The kubelet's --root-dir: below it are the volumes that are unmounted.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="As kubectl has it: where the node tells that it shuts down, and its pods are read."
    "  [default: for its pods the kubelet's; with a watchdog as kubectl finds it, else none]",
)
@click.option(
    "--in-cluster",
    is_flag=True,
    help="It runs in a pod: without --kubeconfig it tells that by the pod's ServiceAccount, and the shutdown outlasts the"
    " pod's container.",
)
@click.option(
    "--supervise",
    is_flag=True,
    help="As process 1 of a container: starts the agent as a child, and again whenever it dies.",
)
@click.option(
    "--secure-metrics-bind-address",
    type=options.AddressParam(),
    default="0",
    show_default=True,
    help="Where /metrics is served over TLS, to readers whom the API server permits; 0 for nowhere.",
)
@click.option("--tls-cert-file", metavar="FILE", help="The certificate of that address.  [default: the kubelet's]")
@click.option("--tls-private-key-file", metavar="FILE", help="Its key.")
def command(
    *,
    settings: "AgentSettings",
    container_runtime_endpoint: str,
    kubelet_unit: str,
    kubelet_root_dir: str,
    kubeconfig: str | None,
    in_cluster: bool,
    supervise: bool,
    secure_metrics_bind_address: tuple[str, int] | None,
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
) -> None:
    """Ends this node's pods in order when the machine shuts down.

    Holds logind's delay lock, stops the kubelet and ends the containers of the CRI runtime in the phases that the
    configuration asks for. Should the machine stay up, the kubelet is started again.
    SIGHUP reads the configuration again. SIGTERM ends the agent and, unless a shutdown is under way, releases the lock.
    """
    if supervise:
        _become_supervisor()
    from lastcall.wiring.agent_beside_kubelet import KubeletSettings, run_agent_beside_kubelet

    if bool(tls_cert_file) != bool(tls_private_key_file):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file: both or neither must be set")
    secure = None
    if secure_metrics_bind_address:
        from lastcall.adapters.kube.secure_metrics import SecureMetricsSettings

        secure = SecureMetricsSettings(
            address=secure_metrics_bind_address,
            certificate=tls_cert_file or "",
            key=tls_private_key_file or "",
            kubelet_pki=Path(kubelet_root_dir) / "pki",
        )
    kubelet = KubeletSettings(
        endpoint=container_runtime_endpoint,
        unit=kubelet_unit,
        root=kubelet_root_dir,
        kubeconfig=kubeconfig or "",
        in_cluster=in_cluster,
        secure_metrics=secure,
    )
    asyncio.run(run_agent_beside_kubelet(settings, kubelet))


def _become_supervisor() -> NoReturn:
    """Replaces this process by the supervisor of the same command without ``--supervise``."""
    from lastcall.adapters.host import supervisor

    command = [sys.executable, "-P", "-m", "lastcall", *(word for word in sys.argv[1:] if word != "--supervise")]
    os.execv(  # noqa: S606  (the supervisor takes the place of this process)
        sys.executable, [sys.executable, "-I", "-S", supervisor.__file__, *command]
    )
