"""Finds the pod of a node's agent."""

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.node_pods import AGENT_LABELS
from lastcall.adapters.kube.resources import NODES, PODS
from lastcall.errors import ApiNotPermitted, InvalidInput, LastcallError, NotFound
from lastcall.model.decoding import quote_value
from lastcall.model.node_standing_facts import AgentPod, StandingNode
from lastcall.names import SYSTEM_NAMESPACE


async def find_agent_pod(client: Client, node: str, verb: str) -> AgentPod:
    """The running pod of the node's agent, in which ``lastcall VERB`` is to run.

    InvalidInput if there is no such node, LastcallError if no pod of an agent runs there.
    """
    fields = f"spec.nodeName={node}"
    found = await client.list(PODS.with_shape(AgentPod), namespace=SYSTEM_NAMESPACE, labels=AGENT_LABELS, fields=fields)
    running = [pod for pod in found.items if pod.status.phase == "Running"]
    if running:
        return running[0]
    await _require_node(client, node)
    if found.items:
        pod = found.items[0]
        phase = pod.status.phase or "not running"
        raise LastcallError(f"the agent's pod {pod.metadata.name} on node {node} is {phase}")
    there = f"if systemd runs its agent, run `sudo lastcall {verb}` on the node"
    record = f"; its last shutdown is in `kubectl get nodeshutdown {node} -o yaml`" if verb == "report" else ""
    raise LastcallError(f"no pod of an agent runs on node {node}: {there}{record}")


async def _require_node(client: Client, name: str) -> None:
    try:
        await client.get(NODES.with_shape(StandingNode), name)
    except NotFound:
        raise InvalidInput("NODE", [f"{quote_value(name)}: there is no such node"]) from None
    except ApiNotPermitted:
        return  # whether there is one is not known, and not necessary
