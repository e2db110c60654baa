"""``lastcall lab``: Kubernetes in little on this machine, for trying, testing and rehearsing; never for production."""

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
    from lastcall.lab.control_plane import ControlPlane
    from lastcall.lab.machines import LocalMachines
    from lastcall.lab.up import Wanted
    from lastcall.wiring import Settings


@click.group("lab")
def command() -> None:
    """Kubernetes in little on this machine, for trying, testing and rehearsing; never for production."""


class _Machine(click.ParamType[str]):
    """The name of a machine, which is that of its node."""

    name = "node"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As it is: it may stand in a URL."""
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
    type=options.Duration(),
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
@click.option(
    "--authorization",
    type=click.Choice(["RBAC", "AlwaysAllow"]),
    default="RBAC",
    show_default=True,
    help="Who may do what: by roles and bindings, or whoever has a token.",
)
@click.option(
    "--audit-log",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append who asked what to this file, one JSON object a line.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also tells what controllers and nodes do.")
def up(
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
    authorization: str,
    audit_log: Path | None,
    verbose: bool,
) -> None:
    """Starts the lab and runs it until Ctrl-C."""
    from lastcall.lab.stopping import quit_at_signals

    quit_at_signals()  # most of the time until it is up goes by before there is a loop that hears them
    _load("lastcall.lab.up")

    from lastcall.lab import up as program
    from lastcall.lab.apiserver.authorization.authorizer import Authorization
    from lastcall.lab.shutdown_managers import Manager

    _speak(verbose=verbose)
    wanted = program.Wanted(
        nodes=nodes,
        runtime=runtime,
        manager=Manager(shutdown_manager),
        delay=propagation_delay,
        kubeconfig=kubeconfig or program.default_kubeconfig(),
        data=data,
        port=port,
        without=without,
        failover=failover,
        authorization=Authorization(authorization),
        audit_log=audit_log,
    )
    asyncio.run(program.up(wanted, tell=functools.partial(_tell, wanted)))


def _load(module: str) -> None:
    """Imports it with all that it needs. That stays: to look for garbage in it meanwhile takes a sixth of the start."""
    import gc
    import importlib

    gc.disable()
    importlib.import_module(module)
    gc.freeze()
    gc.enable()


def _speak(*, verbose: bool) -> None:
    """What goes wrong is told with the name of who says it; all else only to those who want it."""
    import logging

    from lastcall.adapters import logs
    from lastcall.lab.speaking import named

    logs.set_up(as_json=False, verbose=verbose)
    [handler] = logging.getLogger().handlers
    named(handler)
    if not verbose:
        logging.getLogger("lastcall").setLevel(logging.WARNING)


def _tell(wanted: "Wanted", plane: "ControlPlane", machines: "LocalMachines") -> None:
    """What people can do with a lab that is up."""
    nodes = "1 node" if len(machines.names) == 1 else f"{len(machines.names)} nodes"
    power = "lastcall lab power" + _named(wanted.kubeconfig)
    click.echo(f"The lab is up: {nodes}; for trying and testing, never for production.")
    click.echo(f"Its API server is {plane.url}. In another terminal:\n")
    click.echo(f"  export KUBECONFIG={shlex.quote(str(wanted.kubeconfig))}")
    click.echo("  kubectl get nodes")
    if machines.names:
        click.echo(f"  {power} {machines.names[0]} button   # its power button is pressed")
        if wanted.failover:
            click.echo(f"  {power} {machines.names[-1]} off      # its plug is pulled, and lastcall fails it over")
    click.echo("\nCtrl-C ends it" + ("." if wanted.data else " and removes everything."))


def _named(kubeconfig: Path) -> str:
    """What the other commands of the lab need in order to find it: they do not go by $KUBECONFIG."""
    from lastcall.lab.up import default_kubeconfig

    return "" if kubeconfig == default_kubeconfig() else f" --kubeconfig {shlex.quote(str(kubeconfig))}"


@command.command("status")
@_kubeconfig
@_output
def status(*, kubeconfig: Path | None, output: str) -> None:
    """The lab's machines and their power switches."""
    from lastcall.lab import remote

    remote.show(asyncio.run(remote.ask("GET", "status", kubeconfig)), output)


@command.command("power")
@click.argument("node", type=_Machine())
@click.argument("position", metavar="POSITION")
@_kubeconfig
@_output
def power(*, node: str, position: str, kubeconfig: Path | None, output: str) -> None:
    """Turns a machine's power switch.

    POSITION is on, off (the plug is pulled), button (it shuts down), hang (it runs, and answers nobody), partition
    (cut off from the control plane) or storage (cut off from its storage).
    """
    from urllib.parse import urlencode

    from lastcall.lab import remote

    page = f"power/{node}?{urlencode({'to': position})}"
    remote.show(asyncio.run(remote.ask("POST", page, kubeconfig)), output)


@command.command("bmc")
@click.argument("node", type=_Machine())
@click.argument("position", type=click.Choice(["on", "off"]), required=False)
@click.option("--says", type=click.Choice(["on", "off", "truth"]), help="What it tells of the power from now on.")
@click.option("--late", type=options.Duration(), help="How late it answers from now on; after 10s nobody waits for it.")
@click.option("--deaf/--answers", default=None, help="Whether it answers nobody from now on.")
@click.option("--stuck/--works", default=None, help="Whether it only says that it switches from now on.")
@click.option("--wired", type=_Machine(), help="The machine that it tells of and switches from now on.")
@_kubeconfig
@_output
def bmc(*, node: str, position: str | None, kubeconfig: Path | None, output: str, **faults: Any) -> None:
    """Asks a machine's BMC whether it is on; or has it switch; or makes it answer wrongly, late or not at all.

    A BMC that is asked for POSITION switches the power as an administrator or a fencing program does it from afar.
    """
    from urllib.parse import urlencode

    from lastcall.lab import remote

    wanted = _faults(**faults)
    if wanted and position:
        raise click.UsageError("a BMC is either asked to switch or made to fail: call it twice")
    if wanted:
        method, page = "POST", f"bmc/{node}?{urlencode(wanted)}"
    else:
        method, page = ("POST", f"bmc/{node}/{position}") if position else ("GET", f"bmc/{node}")
    remote.show(asyncio.run(remote.ask(method, page, kubeconfig)), output)


def _faults(
    *, says: str | None, late: float | None, deaf: bool | None, stuck: bool | None, wired: str | None
) -> dict[str, str]:
    """As ``bmc.Faults.told`` takes them: those that the command line names."""
    named = {
        "says": says,
        "late": None if late is None else duration.of_seconds(late),
        "deaf": None if deaf is None else str(deaf).lower(),
        "stuck": None if stuck is None else str(stuck).lower(),
        "wired": wired,
    }
    return {name: value for name, value in named.items() if value is not None}


@command.command("down")
@_kubeconfig
def down(*, kubeconfig: Path | None) -> None:
    """Ends the lab, as Ctrl-C does."""
    from lastcall.lab import remote

    asyncio.run(remote.ask("POST", "down", kubeconfig))


@command.command("node")
@options.program
@options.endpoint
@click.option(
    "--manifests",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="A directory of Pod manifests, run as a kubelet runs static pods.",
)
@click.option("--runtime", type=click.Choice(["processes", "containerd"]), default="processes", show_default=True)
def node(*, settings: "Settings", manifests: Path, runtime: str, container_runtime_endpoint: str) -> None:
    """Runs the pods of a directory, and ends them in order when the machine goes down.

    Node and pod status are written below STATE_DIR/status as a kubelet writes them to the API server.
    """
    from lastcall.lab.program import run_node

    endpoint = container_runtime_endpoint if runtime == "containerd" else None
    asyncio.run(run_node(settings, manifests=manifests, endpoint=endpoint))
