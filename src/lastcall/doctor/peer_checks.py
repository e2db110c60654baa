"""The doctor's check of ``watchdog.peers``: whether this node and enough others could ask each other (pure)."""

from collections.abc import Iterator

from lastcall import names
from lastcall.doctor.facts import HostFacts, PeerFacts, UnknownFact
from lastcall.doctor.finding import Finding, failure, ok, unknown, warning
from lastcall.doctor.watchdog_checks import requested_watchdog
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.model.watchdog_peers import LEAST_KEY

_SECRET = f"Secret {names.SYSTEM_NAMESPACE}/{names.PEERS_SECRET}"
_MAKE = (
    f"kubectl -n {names.SYSTEM_NAMESPACE} create secret generic {names.PEERS_SECRET} "
    f'--from-literal={names.PEERS_KEY}="$(openssl rand -hex {LEAST_KEY})"'
)
_AGENT = "its log has the reason; a changed configuration takes effect when the agent restarts"

Told = Iterator[tuple[str, str]]
"""A problem, and what to do about it."""


def peer_port(facts: HostFacts) -> int | None:
    """The UDP port for questions to peers; None if not configured or unknown."""
    settings = requested_watchdog(facts)
    return None if settings is None or isinstance(settings, UnknownFact) or not settings.peers else settings.peers.port


def check_watchdog_peers(facts: HostFacts) -> Finding:
    """Whether this node could ask its peers when the API server is lost, and whether enough of them would answer.

    It does not test whether datagrams arrive: a node that has the API server does not answer (``watchdog.messages``).
    """
    settings, found = requested_watchdog(facts), facts.peers
    if isinstance(settings, UnknownFact):
        return unknown(settings.reason)
    if settings is None or settings.peers is None:
        return ok("the configuration asks for none")
    if found is None:
        return unknown("not known: the cluster was not asked", "give --kubeconfig")
    if isinstance(found, UnknownFact):
        return unknown(f"not known: {found.reason}")
    return _judge_peers(facts, found, settings.peers.port)


def _judge_peers(facts: HostFacts, found: PeerFacts, number: int) -> Finding:
    for message, fix in (*_key_problems(found), *_address_problems(found), *_port_problems(facts, found)):
        return failure(message, fix)
    if concerns := [*_idle_problems(facts, found), *_majority_problems(found)]:
        return warning("; ".join(one for one, _ in concerns), "; ".join(fix for _, fix in concerns))
    if reasons := [*_unknown_reasons(facts, found)]:
        return unknown(f"not known: {'; '.join(reasons)}")
    whose = "the agent has" if _is_agent_running(facts) else "the agent can bind"
    return ok(f"{_tally_text(found)}; {whose} UDP port {number} of this node")


# -- failures: this node cannot ask its peers --------------------------------------------------------------------------


def _key_problems(found: PeerFacts) -> Told:
    if isinstance(found.keys, UnknownFact):
        return
    if not found.keys:
        yield f"{_SECRET} is missing, or has no {names.PEERS_KEY}", _MAKE
    elif (least := min(found.keys)) < LEAST_KEY:
        yield f"{_SECRET}: a key of {least} bytes is too short", f"give it one of {LEAST_KEY} bytes or more"


def _address_problems(found: PeerFacts) -> Told:
    if isinstance(found.nodes, UnknownFact) or found.here or found.host not in found.nodes:
        return
    address = found.nodes[found.host]
    if not address:
        yield f"Node {found.host} has no internal address", "give its kubelet one (--node-ip)"
    else:
        message = f"the internal address of Node {found.host}, {address}, is none of this machine's"
        yield message, "run lastcall doctor in the host's network, or give its kubelet the right one (--node-ip)"


def _port_problems(facts: HostFacts, found: PeerFacts) -> Told:
    tried = found.here.get(_own_node(found))
    if tried and not tried.works and facts.agent is None:
        fix = "end the program that has it, or set another watchdog.peers.port on all nodes"
        yield f"{tried.message}, and no agent runs here", fix


# -- warnings: asking has no effect, or not yet ------------------------------------------------------------------------


def _idle_problems(facts: HostFacts, found: PeerFacts) -> Told:
    """An agent that runs without the configured peers."""
    me = _own_node(found)
    if not me or not _is_agent_running(facts) or isinstance(found.promises, UnknownFact):
        return
    said = found.promises.get(me)
    if not _counts_peers(said):
        why = f" ({said.why})" if said and said.why else ""
        yield f"the agent runs, and its Lease {names.NODES_NAMESPACE}/{me} promises nothing by peers{why}", _AGENT
    elif found.here[me].works:
        yield "the agent runs, and does not hold the port", _AGENT


def _majority_problems(found: PeerFacts) -> Told:
    if isinstance(found.nodes, UnknownFact) or isinstance(found.promises, UnknownFact):
        return
    if 2 * len(_counting_nodes(found.nodes, found.promises)) <= len(found.nodes):
        message = (
            f"only {_tally_text(found)}, which is no majority: if all nodes lose the API server, they are reset anyway"
        )
        yield message, "have more than half of all nodes, control plane included, run the agent with watchdog.peers"


def _unknown_reasons(facts: HostFacts, found: PeerFacts) -> Iterator[str]:
    yield from (one.reason for one in (found.nodes, found.keys, found.promises) if isinstance(one, UnknownFact))
    if isinstance(found.nodes, UnknownFact):
        return
    if not (me := _own_node(found)):
        yield "which Node this machine is: none, or more than one, has an address of it"
    elif isinstance(facts.agent, UnknownFact) and not found.here[me].works:
        yield f"{found.here[me].message}, and whether that is the agent is not known: {facts.agent.reason}"


# -- helpers -----------------------------------------------------------------------------------------------------------


def _own_node(found: PeerFacts) -> str:
    """This machine's node: by host name, else the only node with an address of this machine; "" if unknown."""
    if found.host in found.here:
        return found.host
    return next(iter(found.here)) if len(found.here) == 1 else ""


def _is_agent_running(facts: HostFacts) -> bool:
    return isinstance(facts.agent, int)


def _counts_peers(promise: WatchdogPromise | None) -> bool:
    return bool(promise and promise.peers and promise.armed_timing)


def _counting_nodes(nodes: dict[str, str], promises: dict[str, WatchdogPromise]) -> list[str]:
    return [name for name in nodes if _counts_peers(promises.get(name))]


def _tally_text(found: PeerFacts) -> str:
    nodes = {} if isinstance(found.nodes, UnknownFact) else found.nodes
    promises = {} if isinstance(found.promises, UnknownFact) else found.promises
    return f"{len(_counting_nodes(nodes, promises))} of all {len(nodes)} nodes say in their Leases that they ask each other"
