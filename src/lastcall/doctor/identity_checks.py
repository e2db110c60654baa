"""The doctor's check of the identities with which an agent reaches the API server (pure)."""

from lastcall.doctor.facts import HostFacts, UnknownFact
from lastcall.doctor.finding import Finding, ok, unknown, warning


def check_identities(facts: HostFacts) -> Finding:
    """Whether the node's identity, and the agent's own if one is given, have the rights that an agent needs of them."""
    found = {"node": facts.node_identity, "own": facts.own_identity}
    problems = [f"{name}: {problem}" for name, one in found.items() for problem in _problems(one)]
    silent = [f"{name}: {one.reason}" for name, one in found.items() if isinstance(one, UnknownFact)]
    if problems:
        return warning(
            f"an identity for the API server does not suffice: {'; '.join([*problems, *silent])}",
            "apply lastcall manifests agent --access-only --own-node, or let the agent read the kubelet's kubeconfig",
        )
    if silent:
        return unknown(f"not known: {'; '.join(silent)}")
    if facts.node_identity is None:
        return ok("there is no identity for the API server: the cluster does not learn of a shutdown of this machine")
    if facts.own_identity is None:
        return ok("the node's identity has its rights; the agent's own was not checked without --kubeconfig")
    return ok("the node's identity and the agent's own have their rights")


def _problems(found: tuple[str, ...] | UnknownFact | None) -> tuple[str, ...]:
    return found if isinstance(found, tuple) else ()
