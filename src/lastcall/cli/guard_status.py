"""``lastcall guard status``: which pods are held, why, how far they are, and by whose request."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from lastcall.cli import cluster_access
from lastcall.cli.options import require_stdout
from lastcall.cli.tables import print_text_table
from lastcall.cli.terminal import stdout_terminal
from lastcall.errors import ApiNotPermitted, LastcallError, NotFound
from lastcall.model.decoding import quote_value
from lastcall.model.foreign_text import plain_text
from lastcall.model.guard_policy import GuardPolicy

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.report import guard_status


@click.command("status")
@click.argument("pod", required=False, default="")
@click.option("-n", "--namespace", metavar="NAME", help="Only of this namespace.  [default: all]")
@cluster_access.cluster_options
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def command(*, pod: str, namespace: str | None, kubeconfig: str | None, context: str | None, output: str) -> None:
    """Which pods are held by a GuardPolicy: why, how far, since when, and by whose request.

    Reads GuardPolicies, and changes nothing. POD shows the pods of that name alone. Exit code 0 also if pods are held; 1
    if there is no such pod, or the cluster does not answer.
    """
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.report import guard_status

    require_stdout()
    rows = asyncio.run(_read_rows(pod, namespace or "", kubeconfig, context))
    if output != "table":
        _print_document(rows, output)
    elif rows:
        now = datetime.fromtimestamp(SystemClock().wall(), UTC)
        plain = [
            ([plain_text(cell) for cell in cells], plain_text(text))
            for cells, text in guard_status.table_rows(rows, now)
        ]
        print_text_table(stdout_terminal(), [*guard_status.TITLES, guard_status.LAST_TITLE], plain)
    else:
        click.echo(f"Pod {plain_text(pod)} is not held" if pod else "No pods are held", err=True)


async def _read_rows(
    pod: str, namespace: str, kubeconfig: str | None, context: str | None
) -> "Sequence[guard_status.HeldPodRow]":
    """The held pods. LastcallError if there is no pod of that name, or no guard."""
    from lastcall.adapters.kube.resources import GUARD_POLICIES
    from lastcall.report import guard_status

    async with cluster_access.open_client(kubeconfig, context, manager="lastcall-guard-status") as client:
        try:
            policies = (await client.list(GUARD_POLICIES.with_shape(GuardPolicy), namespace=namespace)).items
        except NotFound as error:
            raise LastcallError("the cluster has no GuardPolicies: no guard is installed") from error
        rows = guard_status.list_held_pods(policies, pod)
        if pod and not rows:
            await _require_pod(client, namespace, pod)
        return rows


async def _require_pod(client: "Client", namespace: str, pod: str) -> None:
    """LastcallError if there is no pod of that name. Who may not list pods is told of those that are held alone."""
    from lastcall.adapters.kube.resources import PODS

    try:
        found, _ = await client.list_raw(PODS, namespace=namespace, fields=f"metadata.name={pod}")
    except ApiNotPermitted:
        return
    if not found:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        raise LastcallError(f"there is no pod {quote_value(pod)} {where}")


def _print_document(rows: Sequence[object], output: str) -> None:
    import msgspec

    from lastcall.manifests.yaml_output import to_yaml

    document = {"pods": msgspec.to_builtins(rows)}
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        click.echo(to_yaml([document]).removeprefix("---\n"), nl=False)
