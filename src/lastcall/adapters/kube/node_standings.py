"""Reads how all nodes stand, or some of them: three lists, or two requests for each node that is named and one list."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_pods import AGENT_LABELS
from lastcall.adapters.kube.refusals import explain_refusal
from lastcall.adapters.kube.resources import NODE_SHUTDOWNS, NODES, PODS
from lastcall.errors import ApiNotPermitted, NotFound
from lastcall.model.node_standing_facts import AgentPod, NodeStandingFacts, RecordedShutdown, StandingNode
from lastcall.names import SYSTEM_NAMESPACE

T = TypeVar("T")

_NODES = NODES.with_shape(StandingNode)
_PODS = PODS.with_shape(AgentPod)
_SHUTDOWNS = NODE_SHUTDOWNS.with_shape(RecordedShutdown)


class NodeStandings(NamedTuple):
    """``missing`` are the names without a Node; ``warnings`` say what may not be read, and so is not known."""

    nodes: Sequence[NodeStandingFacts]
    missing: Sequence[str]
    warnings: Sequence[str]


class NodeStandingsReader:
    """Needs list of Nodes (get for those that are named); what else it may not read is a warning."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._warnings: list[str] = []

    async def read(self, names: Sequence[str] = ()) -> NodeStandings:
        """The nodes of these names in their order, or all by name. ApiNotPermitted if Nodes may not be read."""
        nodes, pods, shutdowns = await asyncio.gather(
            self._read_nodes(names),
            self._optional(self._list_agents(), "whether agents run"),
            self._optional(self._read_shutdowns(names), "the last shutdowns"),
        )
        last = {one.metadata.name: one for one in shutdowns or ()}
        found = [
            NodeStandingFacts(
                node=node,
                agents=None if pods is None else _pods_of(pods, node.metadata.name),
                shutdown=last.get(node.metadata.name),
            )
            for node in nodes
        ]
        there = {node.metadata.name for node in nodes}
        return NodeStandings(found, [name for name in names if name not in there], self._warnings)

    async def _read_nodes(self, names: Sequence[str]) -> Sequence[StandingNode]:
        if names:
            return await self._get_each(self._get_node, names)
        found = (await self._client.list(_NODES)).items
        return sorted(found, key=lambda node: node.metadata.name)

    async def _list_agents(self) -> Sequence[AgentPod]:
        return (await self._client.list(_PODS, namespace=SYSTEM_NAMESPACE, labels=AGENT_LABELS)).items

    async def _read_shutdowns(self, names: Sequence[str]) -> Sequence[RecordedShutdown]:
        """None at all where NodeShutdown is not defined."""
        if names:
            return await self._get_each(self._get_shutdown, names)
        try:
            return (await self._client.list(_SHUTDOWNS)).items
        except NotFound:
            return ()

    async def _get_node(self, name: str) -> StandingNode:
        return await self._client.get(_NODES, name)

    async def _get_shutdown(self, name: str) -> RecordedShutdown:
        return await self._client.get(_SHUTDOWNS, name)

    async def _get_each(self, get: Callable[[str], Awaitable[T]], names: Sequence[str]) -> list[T]:
        """Those that exist, each once."""

        async def find(name: str) -> T | None:
            try:
                return await get(name)
            except NotFound:
                return None

        found = await asyncio.gather(*map(find, dict.fromkeys(names)))
        return [one for one in found if one is not None]

    async def _optional(self, call: Awaitable[T], what: str) -> T | None:
        try:
            return await call
        except ApiNotPermitted as error:
            self._warnings.append(f"not known: {what}: {explain_refusal(error)}")
            return None


def _pods_of(pods: Sequence[AgentPod], node: str) -> tuple[AgentPod, ...]:
    return tuple(pod for pod in pods if pod.spec.node_name == node)
