"""``lastcall lab``: a node on this machine, for trying and testing; never for production."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastcall.cli import options

if TYPE_CHECKING:
    from lastcall.wiring import Settings


@click.group("lab")
def command() -> None:
    """A node on this machine, for trying and testing; never for production."""


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
