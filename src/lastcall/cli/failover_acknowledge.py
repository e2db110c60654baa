"""``lastcall failover acknowledge``: a person confirms that a node's machine is off."""

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import click

from lastcall.cli import cluster_access
from lastcall.errors import Conflict, InvalidInput, NotFound, RefusedForSafety
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.adapters.kube.resources import Object

_ATTEMPTS = 5
"""Attempts: other programs write the Node's status at the same time."""


@click.command("acknowledge")
@click.argument("node")
@click.option(
    "--boot-id", required=True, metavar="ID", help="The boot that is over: the Node's status.nodeInfo.bootID."
)
@cluster_access.cluster_options
def command(*, node: str, boot_id: str, kubeconfig: str | None, context: str | None) -> None:
    """Says that the machine of NODE is off, for certain and for good, as far as boot ID goes.

    The controller then takes the node's pods and volumes away by force, unless something else says that the machine is
    alive. Make sure of it first: that it is silent is no sign. Refused (exit code 3) if the node is Ready or shows
    another boot. It counts until the node renews its Lease again.
    """
    boot_id = boot_id.strip()
    asyncio.run(_acknowledge_in_cluster(node, boot_id, kubeconfig, context))
    click.echo(plain_text(f"node {node}: boot {boot_id} is acknowledged to be over"))


async def _acknowledge_in_cluster(node: str, boot_id: str, kubeconfig: str | None, context: str | None) -> None:
    async with cluster_access.open_client(kubeconfig, context, manager="lastcall-acknowledge") as client:
        await acknowledge_boot(client, node, boot_id)


async def acknowledge_boot(client: "Client", node: str, boot_id: str) -> None:
    """Writes the annotation on the Node that was read right before; a changed Node causes a Conflict.

    The annotation names the last renewal of the node's Lease, so that it never counts for a later outage of the same
    boot. Raises RefusedForSafety if the node is alive or runs another boot; InvalidInput if there is no such node, or
    no boot id.
    """
    from lastcall import names
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.adapters.kube.resources import NODES
    from lastcall.failover.evidence.acknowledgement import AcknowledgementNote, list_objections, to_annotation

    if not boot_id:
        raise InvalidInput("--boot-id", ["is empty"])
    for attempt in range(_ATTEMPTS):
        renewed = await _lease_renew_time(client, node)
        try:
            found = await client.get(NODES, node)
        except NotFound:
            raise InvalidInput("NODE", [f"there is no node {node}"]) from None
        ready, shown = _ready_and_boot_id(found)
        silent = _seconds_since(renewed, SystemClock().wall())
        if wrong := list_objections(node, ready=ready, boot_id=shown, wanted=boot_id, silent=silent):
            raise RefusedForSafety("; ".join(wrong))
        revision = found["metadata"]["resourceVersion"]
        annotations = {names.ACKNOWLEDGED_DEAD: to_annotation(AcknowledgementNote(boot_id=boot_id, renewed=renewed))}
        try:
            await client.patch(NODES, node, {"metadata": {"resourceVersion": revision, "annotations": annotations}})
        except Conflict:
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


async def _lease_renew_time(client: "Client", node: str) -> str:
    """``renewTime`` of the node's Lease, read before the Node: a later renewal makes the annotation invalid."""
    from lastcall.adapters.kube.resources import LEASES
    from lastcall.model.snapshot import NODE_LEASES

    try:
        found = await client.get(LEASES, node, namespace=NODE_LEASES)
    except NotFound:
        return ""
    return str((found.get("spec") or {}).get("renewTime") or "")


def _seconds_since(renewed: str, wall: float) -> float | None:
    """Seconds since then by our own clock; None without a valid time."""
    try:
        return wall - datetime.fromisoformat(renewed).timestamp()
    except ValueError:
        return None


def _ready_and_boot_id(node: "Object") -> tuple[str, str]:
    """The status of the condition Ready and the boot id; empty where missing."""
    status = node.get("status") or {}
    conditions = status.get("conditions") or []
    ready = next((str(one.get("status", "")) for one in conditions if one.get("type") == "Ready"), "")
    return ready, str((status.get("nodeInfo") or {}).get("bootID") or "")
