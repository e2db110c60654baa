"""The doctor's check of what is known about the pods that run here (pure)."""

from lastcall.doctor.facts import HostFacts, UnknownFact
from lastcall.doctor.finding import Finding, ok, unknown, warning
from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.ports.node import PrioritySource

_PLACES = {
    PrioritySource.WATCH: "the API",
    PrioritySource.CHECKPOINT: "the checkpoint",
    PrioritySource.MANIFEST: "manifests",
    PrioritySource.RUNTIME: "annotations",
}

_NAMED = 5


def static_pod_path(facts: HostFacts) -> str:
    """``staticPodPath`` of the agent's configuration; "" if it has none or cannot be read."""
    if isinstance(facts.config, UnknownFact):
        return ""
    try:
        return config.parse_config(facts.config.data, facts.config.path).static_pod_path
    except InvalidInput:
        return ""


def check_priorities(facts: HostFacts) -> Finding:
    """Whether an agent would know the priority of each pod that runs here, and from which source."""
    found = facts.priorities
    if isinstance(found, UnknownFact):
        return unknown(f"not known: {found.reason}")
    silent = f"; the API does not tell: {found.api.reason}" if isinstance(found.api, UnknownFact) else ""
    if not found.sources:
        return ok(f"no pods run here{silent}")
    counts = [(place, sum(known is source for known in found.sources.values())) for source, place in _PLACES.items()]
    told = ", ".join(f"{count} from {place}" for place, count in counts if count)
    total = f"{len(found.sources)} pod{'' if len(found.sources) == 1 else 's'}: {told or 'none known'}"
    unplaced = sorted(pod for pod, source in found.sources.items() if source is PrioritySource.DEFAULT)
    if not unplaced:
        return ok(f"{total}{silent}")
    more = f" and {len(unplaced) - _NAMED} more" if len(unplaced) > _NAMED else ""
    return warning(
        f"{total}; taken for 0, so that they end first: {', '.join(unplaced[:_NAMED])}{more}{silent}",
        "let the agent read the kubelet's kubeconfig, or give it --kubeconfig with the right to list this node's pods",
    )
