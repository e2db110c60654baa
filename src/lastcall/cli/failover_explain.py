"""``lastcall failover explain``: why a pod or a node is not failed over yet."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli import clusters
from lastcall.cli.options import Moment, answering, content, source
from lastcall.errors import InvalidInput
from lastcall.model.decode import shown
from lastcall.model.foreign import plain

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.failover.telling.explain import Explanation, Hurdle
    from lastcall.failover.telling.objects import Objects
    from lastcall.model.observed import LivePod

_KINDS = {"node": "node", "nodes": "node", "pod": "pod", "pods": "pod"}


@click.command("explain")
@click.argument("target", metavar="POD|NODE")
@click.option("-n", "--namespace", metavar="NAME", help="Of the pod.  [default: whichever has one of this name]")
@click.option("--state", metavar="FILE", help="A List of Nodes, Pods, FencePolicies and others; no cluster is asked.")
@click.option("--now", type=Moment(), metavar="TIME", help="When the state was taken.  [default: the present time]")
@clusters.named
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    *,
    target: str,
    namespace: str | None,
    state: str | None,
    now: datetime | None,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Why a pod or a node is not failed over yet, what is awaited, and when at the latest.

    The target is the name of a node or of a pod, NAMESPACE/POD, node/NODE or pod/POD. What is told goes by the times
    that stand in the objects; the controller goes by what it has seen itself. Nothing is changed. Exit code 0 whenever
    there is an answer; 2 if there is no such node or pod, or the file is wrong.
    """
    from lastcall.adapters.clock import SystemClock
    from lastcall.failover.telling import objects

    answering()
    if state and (kubeconfig or context):
        raise click.UsageError("--state asks no cluster: leave --kubeconfig and --context out")
    found = objects.from_file(content(state), source(state)) if state else asyncio.run(_ask(kubeconfig, context))
    moment = now.timestamp() if now else float(int(SystemClock().wall()))
    answer = explain(found, target, namespace or "", moment).with_hurdle(objects.leaderless(found, moment))
    click.echo(_json(answer) if output == "json" else "\n".join(map(plain, _text(answer))))


def explain(found: "Objects", target: str, namespace: str, now: float) -> "Explanation":
    """InvalidInput if there is no such node or pod, or more than one pod."""
    from lastcall.failover.telling import explain as explaining
    from lastcall.failover.telling import objects

    kind, where, name = _named(target, namespace)
    if kind == "node" and not found.node(name):
        raise InvalidInput("POD|NODE", [f"there is no node {name}"])
    if kind == "node" or (not kind and not where and found.node(name)):
        return explaining.of_node(objects.case_of(found, name, now), now)
    pod = _pod(found, name, where)
    if not pod.spec.node_name:
        return explaining.unbound("/".join(pod.key))
    case = objects.case_of(found, pod.spec.node_name, now)
    left = next((one for one in case.pods if (one.namespace, one.name) == pod.key), None)
    return explaining.of_pod(case, left, now) if left else explaining.orphan(case, "/".join(pod.key), now)


def _named(target: str, namespace: str) -> tuple[str, str, str]:
    """``node``, ``pod`` or neither, the namespace, and the name. InvalidInput if that is no target."""
    before, slash, rest = target.partition("/")
    kind = _KINDS.get(before, "") if slash else ""
    where, _, name = (rest if kind else target).rpartition("/")
    if not name or (where and kind == "node") or "/" in where:
        raise InvalidInput("POD|NODE", [f"{shown(target)}: must be NODE, POD, NAMESPACE/POD, node/NODE or pod/POD"])
    if where and namespace not in ("", where):
        raise InvalidInput("POD|NODE", [f"{shown(target)}: must be in namespace {namespace}, which --namespace names"])
    return kind, where or namespace, name


def _pod(found: "Objects", name: str, namespace: str) -> "LivePod":
    pods = [one for one in found.pods if one.metadata.name == name and namespace in ("", one.metadata.namespace)]
    if len(pods) > 1:
        several = ", ".join(sorted("/".join(one.key) for one in pods))
        raise InvalidInput("POD|NODE", [f"{name} may be any of {several}: give its namespace"])
    if not pods:
        where = f" in namespace {namespace}" if namespace else ", nor a node of that name"
        raise InvalidInput("POD|NODE", [f"there is no pod {name}{where}"])
    return pods[0]


async def _ask(kubeconfig: str | None, context: str | None) -> "Objects":
    async with clusters.client(kubeconfig, context, manager="lastcall-explain") as client:
        return await from_cluster(client)


async def from_cluster(client: "Client") -> "Objects":
    """What a cluster has; of kinds that it does not know, none."""
    from lastcall.adapters.kube import resources
    from lastcall.adapters.kube.failover_cluster import POLICIES
    from lastcall.errors import NotFound
    from lastcall.failover.telling.objects import ELECTION, Objects, PlacedLease, elects
    from lastcall.model.node_shutdown_object import NodeShutdown
    from lastcall.model.observed import LiveNode, LivePod, WatchedAttachment, WatchedLease
    from lastcall.model.snapshot import NODE_LEASES, PersistentVolume
    from lastcall.names import NODES_NAMESPACE

    async def items(resource: Any, type_: Any, namespace: str = "") -> tuple[Any, ...]:
        try:
            return tuple((await client.list(resource.read_as(type_), namespace=namespace)).items)
        except NotFound:
            return ()

    async def elections() -> tuple[Any, ...]:
        fields = f"metadata.name={ELECTION}"
        found = (await client.list(resources.LEASES.read_as(PlacedLease), fields=fields)).items
        return tuple(filter(elects, found))

    shutdowns = resources.resource(POLICIES.group, POLICIES.version, "nodeshutdowns")
    return Objects(
        nodes=await items(resources.NODES, LiveNode),
        pods=await items(resources.PODS, LivePod),
        leases=await items(resources.LEASES, WatchedLease, NODE_LEASES),
        agents=await items(resources.LEASES, WatchedLease, NODES_NAMESPACE),
        attachments=await items(resources.ATTACHMENTS, WatchedAttachment),
        volumes=await items(resources.VOLUMES, PersistentVolume),
        shutdowns=await items(shutdowns, NodeShutdown),
        policies=await items(POLICIES, dict),
        elections=await elections(),
    )


def _text(answer: "Explanation") -> list[str]:
    lines = [f"{answer.about}: {answer.next}"]
    lines += _part("In the way", [_timed(one) for one in answer.hurdles])
    lines += _part("Known", answer.known)
    lines += _part("What would prove that its boot is over", [_timed(one) for one in answer.proofs])
    lines += _part("To fail over", [answer.left] if answer.left else [])
    if answer.hurdles:
        until = f"at {_moment(answer.latest)}" if answer.latest is not None else "nobody can say"
        lines += ["", f"At the latest: {until}"]
    return lines


def _part(title: str, sentences: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  - {one}" for one in sentences)] if sentences else []


def _timed(hurdle: "Hurdle") -> str:
    return hurdle.why if hurdle.until is None else f"{hurdle.why} (until {_moment(hurdle.until)})"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _json(answer: "Explanation") -> str:
    def timed(found: "Sequence[Hurdle]") -> list[dict[str, str | None]]:
        return [{"why": one.why, "until": None if one.until is None else _moment(one.until)} for one in found]

    latest = None if answer.latest is None else _moment(answer.latest)
    document = {
        "about": answer.about,
        "next": answer.next,
        "inTheWay": timed(answer.hurdles),
        "known": list(answer.known),
        "proofs": timed(answer.proofs),
        "left": answer.left,
        "latest": latest,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)
