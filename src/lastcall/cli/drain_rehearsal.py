"""``lastcall drain --dry-run``: what would be asked for, and how the API server would answer."""

from typing import TYPE_CHECKING

import click

from lastcall.errors import ApiFailure, LastcallError
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.drain.planning.drain_case import DrainCase
    from lastcall.drain.planning.drain_plan import DrainPlan
    from lastcall.model.drain_facts import PodName

_ENDINGS = {"client": " (dry run)", "server": " (server dry run)"}
"""What kubectl adds to its lines."""


async def rehearse_drain(client: "Client", case: "DrainCase", plan: "DrainPlan", dry_run: str) -> int:
    """``--dry-run``: says what would be asked for; with ``server`` the API server says how it would answer."""
    ending, asks = _ENDINGS[dry_run], dry_run == "server"
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
    """The answer to a request without effect; None for a success, or for a pod that is gone meanwhile."""
    from lastcall.adapters.kube.resources import PODS
    from lastcall.drain.decisions.eviction_answers import read_answer
    from lastcall.drain.decisions.pod_progress import AnswerKind

    namespace, name = pod
    grace = case.settings.grace_period
    try:
        if case.settings.disable_eviction:
            await client.delete(PODS, name, namespace=namespace, uid=uid, grace=grace, dry_run=True)
        else:
            await client.evict(name, namespace=namespace, uid=uid, grace=grace, dry_run=True)
    except ApiFailure as error:
        return None if read_answer(error).kind is AnswerKind.GONE else error
    return None
