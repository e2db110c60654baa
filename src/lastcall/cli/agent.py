"""``lastcall agent``: ends this node's pods in order when the machine goes down."""

import asyncio
from typing import TYPE_CHECKING

import click

from lastcall.cli import options

if TYPE_CHECKING:
    from lastcall.wiring import Settings


@click.command("agent")
@options.program
@options.endpoint
def command(*, settings: "Settings", container_runtime_endpoint: str) -> None:
    """Ends this node's pods in order when the machine goes down.

    Holds logind's delay lock and ends the containers of the CRI runtime in the phases that the configuration asks for.
    SIGHUP reads the configuration again. SIGTERM ends the agent and, unless a shutdown is under way, releases the lock.
    """
    from lastcall import wiring

    asyncio.run(wiring.agent_beside_kubelet(settings, container_runtime_endpoint))
