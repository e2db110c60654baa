"""``lastcall failover explain``: why a pod or a node is not failed over yet."""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli import cluster_access
from lastcall.cli.options import TimeParam, read_content, require_stdout, source_name
from lastcall.errors import InvalidInput
from lastcall.model.decoding import quote_value
from lastcall.model.foreign_text import plain_text

if TYPE_CHECKING:
    from lastcall.adapters.kube.client import Client
    from lastcall.failover.reporting.cluster_objects import ClusterObjects
    from lastcall.failover.reporting.explanation import Explanation, Hurdle
    from lastcall.model.observed import FailoverPod

_KINDS = {"node": "node", "nodes": "node", "pod": "pod", "pods": "pod"}


@click.command("explain")
@click.argument("target", metavar="POD|NODE")
@click.option("-n", "--namespace", metavar="NAME", help="Of the pod.  [default: whichever has one of this name]")
@click.option("--state", metavar="FILE", help="A List of Nodes, Pods, FencePolicies and others; no cluster is asked.")
@click.option("--now", type=TimeParam(), metavar="TIME", help="When the state was taken.  [default: the present time]")
@cluster_access.cluster_options
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
    from lastcall.adapters.host.clock import SystemClock
    from lastcall.failover.reporting import cluster_objects

    require_stdout()
    if state and (kubeconfig or context):
        raise click.UsageError("--state asks no cluster: leave --kubeconfig and --context out")
    found = (
        cluster_objects.read_object_file(read_content(state), source_name(state))
        if state
        else asyncio.run(_ask_cluster(kubeconfig, context))
    )
    moment = now.timestamp() if now else float(int(SystemClock().wall()))
    answer = explain_target(found, target, namespace or "", moment).with_hurdle(
        cluster_objects.no_leader_reason(found, moment)
    )
    click.echo(_to_json(answer) if output == "json" else "\n".join(map(plain_text, _text_lines(answer))))


def explain_target(found: "ClusterObjects", target: str, namespace: str, now: float) -> "Explanation":
    """Explains one target. Raises InvalidInput if there is no such node or pod, or more than one pod."""
    from lastcall.failover.reporting import cluster_objects
    from lastcall.failover.reporting import explanation as explaining

    kind, where, name = _parse_target(target, namespace)
    if kind == "node" and not found.find_node(name):
        raise InvalidInput("POD|NODE", [f"there is no node {name}"])
    if kind == "node" or (not kind and not where and found.find_node(name)):
        return explaining.explain_node(cluster_objects.case_from_objects(found, name, now), now)
    pod = _find_pod(found, name, where)
    if not pod.spec.node_name:
        return explaining.explain_unbound_pod("/".join(pod.key))
    case = cluster_objects.case_from_objects(found, pod.spec.node_name, now)
    left = next((one for one in case.pods if (one.namespace, one.name) == pod.key), None)
    return (
        explaining.explain_pod(case, left, now)
        if left
        else explaining.explain_orphaned_pod(case, "/".join(pod.key), now)
    )


def _parse_target(target: str, namespace: str) -> tuple[str, str, str]:
    """Which of ``find_node`` and ``pod`` to search (or both), namespace and name. InvalidInput if malformed."""
    before, slash, rest = target.partition("/")
    kind = _KINDS.get(before, "") if slash else ""
    where, _, name = (rest if kind else target).rpartition("/")
    if not name or (where and kind == "node") or "/" in where:
        raise InvalidInput(
            "POD|NODE", [f"{quote_value(target)}: must be NODE, POD, NAMESPACE/POD, node/NODE or pod/POD"]
        )
    if where and namespace not in ("", where):
        raise InvalidInput(
            "POD|NODE", [f"{quote_value(target)}: must be in namespace {namespace}, which --namespace names"]
        )
    return kind, where or namespace, name


def _find_pod(found: "ClusterObjects", name: str, namespace: str) -> "FailoverPod":
    pods = [one for one in found.pods if one.metadata.name == name and namespace in ("", one.metadata.namespace)]
    if len(pods) > 1:
        several = ", ".join(sorted("/".join(one.key) for one in pods))
        raise InvalidInput("POD|NODE", [f"{name} may be any of {several}: give its namespace"])
    if not pods:
        where = f" in namespace {namespace}" if namespace else ", nor a node of that name"
        raise InvalidInput("POD|NODE", [f"there is no pod {name}{where}"])
    return pods[0]


async def _ask_cluster(kubeconfig: str | None, context: str | None) -> "ClusterObjects":
    async with cluster_access.open_client(kubeconfig, context, manager="lastcall-explain") as client:
        return await list_objects(client)


async def list_objects(client: "Client") -> "ClusterObjects":
    """Lists the cluster's objects; none of kinds that it does not know."""
    from lastcall.adapters.kube import resources
    from lastcall.adapters.kube.failover_cluster import POLICIES
    from lastcall.errors import NotFound
    from lastcall.failover.reporting.cluster_objects import ELECTION, ClusterObjects, PlacedLease, is_election_lease
    from lastcall.model.node_shutdown_object import NodeShutdown
    from lastcall.model.observed import FailoverPod, LiveNode, WatchedAttachment, WatchedLease
    from lastcall.model.snapshot import NODE_LEASES, PersistentVolume
    from lastcall.names import NODES_NAMESPACE

    async def items(resource: Any, type_: Any, namespace: str = "") -> tuple[Any, ...]:
        try:
            return tuple((await client.list(resource.with_shape(type_), namespace=namespace)).items)
        except NotFound:
            return ()

    async def elections() -> tuple[Any, ...]:
        fields = f"metadata.name={ELECTION}"
        found = (await client.list(resources.LEASES.with_shape(PlacedLease), fields=fields)).items
        return tuple(filter(is_election_lease, found))

    shutdowns = resources.dict_resource(POLICIES.group, POLICIES.version, "nodeshutdowns")
    return ClusterObjects(
        nodes=await items(resources.NODES, LiveNode),
        pods=await items(resources.PODS, FailoverPod),
        leases=await items(resources.LEASES, WatchedLease, NODE_LEASES),
        agents=await items(resources.LEASES, WatchedLease, NODES_NAMESPACE),
        attachments=await items(resources.ATTACHMENTS, WatchedAttachment),
        volumes=await items(resources.VOLUMES, PersistentVolume),
        shutdowns=await items(shutdowns, NodeShutdown),
        policies=await items(POLICIES, dict),
        elections=await elections(),
    )


def _text_lines(answer: "Explanation") -> list[str]:
    lines = [f"{answer.about}: {answer.next}"]
    lines += _section_lines("In the way", [_hurdle_text(one) for one in answer.hurdles])
    lines += _section_lines("Known", answer.known)
    lines += _section_lines("What would prove that its boot is over", [_hurdle_text(one) for one in answer.proofs])
    lines += _section_lines("To fail over", [answer.left] if answer.left else [])
    if answer.hurdles:
        until = f"at {_format_time(answer.resolved_by)}" if answer.resolved_by is not None else "unknown"
        lines += ["", f"At the latest: {until}"]
    return lines


def _section_lines(title: str, sentences: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  - {one}" for one in sentences)] if sentences else []


def _hurdle_text(hurdle: "Hurdle") -> str:
    return hurdle.why if hurdle.until is None else f"{hurdle.why} (until {_format_time(hurdle.until)})"


def _format_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _to_json(answer: "Explanation") -> str:
    def timed(found: "Sequence[Hurdle]") -> list[dict[str, str | None]]:
        return [{"why": one.why, "until": None if one.until is None else _format_time(one.until)} for one in found]

    latest = None if answer.resolved_by is None else _format_time(answer.resolved_by)
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
