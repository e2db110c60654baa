"""``lastcall lab``: a small Kubernetes on this machine for testing and rehearsals; never for production."""

import asyncio
import functools
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli import options
from lastcall.model import duration

if TYPE_CHECKING:
    from lastcall.wiring.agent import AgentSettings
    from lastcall_lab.control_plane.control_plane import ControlPlane
    from lastcall_lab.up.lab_process import LabOptions
    from lastcall_lab.up.local_machines import LocalMachines


@click.group("lab", short_help="Kubernetes in little on this machine, for trying, testing and rehearsing.")
def command() -> None:
    """Kubernetes in little on this machine, for trying, testing and rehearsing; never for production."""


class _MachineParam(click.ParamType[str]):
    """The name of a machine, which is also the name of its node."""

    name = "node"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Checks the name, which becomes part of a URL."""
        if not re.fullmatch(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", value):
            self.fail(f'"{value}" is no name of a machine, which has small letters, digits, "-" and "."', param, ctx)
        return str(value)


_kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    help="The file by which kubectl finds the lab.  [default: ~/.local/state/lastcall/lab.kubeconfig]",
)


_output = click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)


@command.command("up")
@click.option("--nodes", type=click.IntRange(0, 100), default=3, show_default=True, help="How many machines.")
@click.option("--runtime", type=click.Choice(["processes", "containerd"]), default="processes", show_default=True)
@click.option(
    "--shutdown-manager",
    type=click.Choice(["lastcall", "kubelet"]),
    default="lastcall",
    show_default=True,
    help="What ends a node's pods when its power button is pressed.",
)
@click.option(
    "--propagation-delay",
    type=options.DurationParam(),
    default="100ms",
    show_default=True,
    help="How much later than the API server a node knows of endpoints.",
)
@_kubeconfig
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    help="Keep everything in this directory, and go on with what is in it.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of the API server.  [default: any that is free]"
)
@click.option("--without", multiple=True, metavar="CONTROLLER", help="Do not run this controller; may be repeated.")
@click.option("--failover", is_flag=True, help="Run lastcall controller, too: it fails over nodes that are gone.")
@click.option("--guard", is_flag=True, help="Run lastcall guard, too: it holds the deletion of guarded pods.")
@click.option(
    "--authorization",
    type=click.Choice(["RBAC", "AlwaysAllow"]),
    default="RBAC",
    show_default=True,
    help="Who may do what: by roles and bindings, or whoever has a token.",
)
@click.option(
    "--runtime-config",
    metavar="GROUP/VERSION=true,...",
    help="Serve these API versions, too. There is lifecycle.k8s.io/v1alpha1: EvictionRequests, which --guard runs.",
)
@click.option(
    "--audit-log",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append who asked what to this file, one JSON object a line.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also tells what controllers and nodes do.")
def up_command(
    *,
    nodes: int,
    runtime: str,
    shutdown_manager: str,
    propagation_delay: float,
    kubeconfig: Path | None,
    data: Path | None,
    port: int,
    without: tuple[str, ...],
    failover: bool,
    guard: bool,
    authorization: str,
    runtime_config: str | None,
    audit_log: Path | None,
    verbose: bool,
) -> None:
    """Starts the lab and runs it until Ctrl-C."""
    from lastcall_lab.up.signals import exit_at_signals

    exit_at_signals()  # most of the startup happens before there is an event loop that handles signals
    _preload_module("lastcall_lab.up.lab_process")

    from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
    from lastcall_lab.apiserver.catalog.optional_resources import read_runtime_config
    from lastcall_lab.up import lab_process as program
    from lastcall_lab.up.shutdown_managers import ShutdownManagerType

    _set_up_logging(verbose=verbose)
    wanted = program.LabOptions(
        nodes=nodes,
        runtime=runtime,
        manager=ShutdownManagerType(shutdown_manager),
        delay=propagation_delay,
        kubeconfig=kubeconfig or program.default_kubeconfig(),
        data=data,
        port=port,
        without=without,
        failover=failover,
        guard=guard,
        authorization=AuthorizationMode(authorization),
        audit_log=audit_log,
        optional=read_runtime_config(runtime_config or ""),
    )
    asyncio.run(program.run_lab(wanted, tell=functools.partial(_print_instructions, wanted)))


def _preload_module(module: str) -> None:
    """Imports the module with all its dependencies.

    Garbage collection is off meanwhile: imported modules stay anyway, and collecting takes a sixth of the start.
    """
    import gc
    import importlib

    gc.disable()
    importlib.import_module(module)
    gc.freeze()
    gc.enable()


def _set_up_logging(*, verbose: bool) -> None:
    """Logs errors with the name of their component; everything else only with --verbose."""
    import logging

    from lastcall.adapters.telemetry import logs
    from lastcall_lab.up.log_prefix import prefix_machine_names

    logs.configure_logging(as_json=False, verbose=verbose)
    [handler] = logging.getLogger().handlers
    prefix_machine_names(handler)
    if not verbose:
        logging.getLogger("lastcall").setLevel(logging.WARNING)


def _print_instructions(wanted: "LabOptions", plane: "ControlPlane", machines: "LocalMachines") -> None:
    """Prints the commands for using a running lab."""
    nodes = "1 node" if len(machines.names) == 1 else f"{len(machines.names)} nodes"
    power = "lastcall lab power" + _kubeconfig_argument(wanted.kubeconfig)
    click.echo(f"The lab is up: {nodes}; for trying and testing, never for production.")
    click.echo(f"Its API server is {plane.url}. In another terminal:\n")
    click.echo(f"  export KUBECONFIG={shlex.quote(str(wanted.kubeconfig))}")
    click.echo("  kubectl get nodes")
    if machines.names:
        click.echo(f"  {power} {machines.names[0]} button   # its power button is pressed")
        if wanted.failover:
            click.echo(f"  {power} {machines.names[-1]} off      # its plug is pulled, and lastcall fails it over")
    click.echo("\nCtrl-C ends it" + ("." if wanted.data else " and removes everything."))


def _kubeconfig_argument(kubeconfig: Path) -> str:
    """The kubeconfig argument of the lab's other commands, which do not use $KUBECONFIG."""
    from lastcall_lab.up.lab_process import default_kubeconfig

    return "" if kubeconfig == default_kubeconfig() else f" --kubeconfig {shlex.quote(str(kubeconfig))}"


@command.command("status")
@_kubeconfig
@_output
def status_command(*, kubeconfig: Path | None, output: str) -> None:
    """The lab's machines and their power switches."""
    from lastcall_lab.up import lab_client

    lab_client.show_answer(asyncio.run(lab_client.ask_lab("GET", "status", kubeconfig)), output)


@command.command("power")
@click.argument("node", type=_MachineParam())
@click.argument("position", metavar="POSITION")
@_kubeconfig
@_output
def power_command(*, node: str, position: str, kubeconfig: Path | None, output: str) -> None:
    """Turns a machine's power switch.

    POSITION is on, off (the plug is pulled), button (it shuts down), hang (it runs, and answers nobody), partition
    (cut off from the control plane) or storage (cut off from its storage).
    """
    from urllib.parse import urlencode

    from lastcall_lab.up import lab_client

    page = f"power/{node}?{urlencode({'to': position})}"
    lab_client.show_answer(asyncio.run(lab_client.ask_lab("POST", page, kubeconfig)), output)


@command.command("bmc")
@click.argument("node", type=_MachineParam())
@click.argument("position", type=click.Choice(["on", "off"]), required=False)
@click.option("--says", type=click.Choice(["on", "off", "truth"]), help="What it tells of the power from now on.")
@click.option(
    "--late", type=options.DurationParam(), help="How late it answers from now on; after 10s nobody waits for it."
)
@click.option("--deaf/--answers", default=None, help="Whether it answers nobody from now on.")
@click.option("--stuck/--works", default=None, help="Whether it only says that it switches from now on.")
@click.option("--wired", type=_MachineParam(), help="The machine that it tells of and switches from now on.")
@_kubeconfig
@_output
def bmc_command(*, node: str, position: str | None, kubeconfig: Path | None, output: str, **faults: Any) -> None:
    """Asks a machine's BMC whether it is on; or has it switch; or makes it answer wrongly, late or not at all.

    A BMC that is asked for POSITION switches the power as an administrator or a fencing program does it from afar.
    """
    from urllib.parse import urlencode

    from lastcall_lab.up import lab_client

    wanted = _fault_parameters(**faults)
    if wanted and position:
        raise click.UsageError("a BMC is either asked to switch or made to fail: call it twice")
    if wanted:
        method, page = "POST", f"bmc/{node}?{urlencode(wanted)}"
    else:
        method, page = ("POST", f"bmc/{node}/{position}") if position else ("GET", f"bmc/{node}")
    lab_client.show_answer(asyncio.run(lab_client.ask_lab(method, page, kubeconfig)), output)


def _fault_parameters(
    *, says: str | None, late: float | None, deaf: bool | None, stuck: bool | None, wired: str | None
) -> dict[str, str]:
    """The faults on the command line, in the form of ``BmcFaults.with_values``."""
    named = {
        "says": says,
        "late": None if late is None else duration.format_seconds(late),
        "deaf": None if deaf is None else str(deaf).lower(),
        "stuck": None if stuck is None else str(stuck).lower(),
        "wired": wired,
    }
    return {name: value for name, value in named.items() if value is not None}


@command.command("down")
@_kubeconfig
def down_command(*, kubeconfig: Path | None) -> None:
    """Ends the lab, as Ctrl-C does."""
    from lastcall_lab.up import lab_client

    asyncio.run(lab_client.ask_lab("POST", "down", kubeconfig))


@command.command("node")
@options.agent_options
@options.endpoint
@click.option(
    "--manifests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="A directory of Pod manifests, run as a kubelet runs static pods.",
)
@click.option("--runtime", type=click.Choice(["processes", "containerd"]), default="processes", show_default=True)
def node_command(*, settings: "AgentSettings", manifests: Path, runtime: str, container_runtime_endpoint: str) -> None:
    """Runs the pods of a directory, and ends them in order when the machine shuts down.

    Node and pod status are written below STATE_DIR/status as a kubelet writes them to the API server.
    """
    from lastcall_lab.static_node.node_process import run_node

    endpoint = container_runtime_endpoint if runtime == "containerd" else None
    asyncio.run(run_node(settings, manifests=manifests, endpoint=endpoint))


@command.command("kubelet")
@click.option("--node-name", type=_MachineParam(), required=True, help="The name of its node.")
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    required=True,
    help="The kubelet's own access to the API server, as system:node:NAME.",
)
@click.option(
    "--bootstrap-kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The lab's kubeconfig: by it --kubeconfig is written if it does not exist.",
)
@click.option(
    "--root-dir",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    required=True,
    help="Where the volumes and logs of its pods are, and the sockets of CSI drivers (plugins/NAME/csi.sock).",
)
@options.endpoint
@click.option(
    "--pod-manifest-path",
    type=click.Path(path_type=Path, file_okay=False, resolve_path=True),
    help="A directory with the manifests of static pods.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A KubeletConfiguration whose shutdownGracePeriod switches its own shutdown manager on.  [default: off]",
)
@click.option("--logind-root", type=click.Path(path_type=Path), default=Path("/"), hidden=True)
@click.option("-v", "--verbose", is_flag=True)
def kubelet_command(
    *,
    node_name: str,
    kubeconfig: Path,
    bootstrap_kubeconfig: Path | None,
    root_dir: Path,
    container_runtime_endpoint: str,
    pod_manifest_path: Path | None,
    config: Path | None,
    logind_root: Path,
    verbose: bool,
) -> None:
    """Runs the kubelet of a further node of a lab, as a program of its own.

    Its pods are containers of a CRI runtime and run on when it ends, so a service of systemd can run it, and lastcall agent
    beside it as on a real node.
    """
    _preload_module("lastcall_lab.up.kubelet_process")
    from lastcall_lab.up import kubelet_process

    _set_up_logging(verbose=verbose)
    wanted = kubelet_process.KubeletOptions(
        node=node_name,
        kubeconfig=kubeconfig,
        bootstrap=bootstrap_kubeconfig,
        root=root_dir,
        endpoint=container_runtime_endpoint,
        manifests=pod_manifest_path,
        config=config,
        logind_root=logind_root,
    )
    asyncio.run(kubelet_process.run_kubelet(wanted))
