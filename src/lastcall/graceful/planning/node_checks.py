"""The plan of a node of a cluster, and what is wrong with the order in it (pure)."""

from lastcall.graceful.config import AgentConfig
from lastcall.graceful.planning.inversions import Inversion, find_inversions, inversion_document, inversion_text
from lastcall.graceful.planning.shutdown_plan import ShutdownPlan, build_plan
from lastcall.model.base import Facts
from lastcall.model.node_pods import NodePods
from lastcall.model.pods import SYSTEM_CLASSES, Pod
from lastcall.ports.node import PrioritySource

_AGENT_LABELS = {"app.kubernetes.io/name": "lastcall", "app.kubernetes.io/component": "agent"}
_NODE_CRITICAL = "system-node-critical"


class NodeChecks(Facts, frozen=True):
    """The plan without the agent's own pod, which is in ``agents`` because it is never ended.

    ``priority_sources`` has by pod where an agent that watches the API has its priority from.
    """

    plan: ShutdownPlan
    inversions: tuple[Inversion, ...]
    agents: tuple[Pod, ...]
    priority_sources: dict[str, str]

    @property
    def inversion_texts(self) -> tuple[str, ...]:
        """The inversions and a misplaced agent, as sentences for people."""
        low = tuple(
            f"{one.key} is the agent, and the kubelet may evict it: give it priorityClassName {_NODE_CRITICAL}"
            for one in self.agents
            if (one.spec.priority or 0) < SYSTEM_CLASSES[_NODE_CRITICAL]
        )
        return (*map(inversion_text, self.inversions), *low)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What else people should know."""
        unknown = sorted(key for key, source in self.priority_sources.items() if source == PrioritySource.DEFAULT.value)
        known = "Priorities are those of the API server, which an agent watches (source Watch)"
        but = f", but for {', '.join(unknown)} (source Default)" if unknown else ""
        kept = tuple(f"{one.key} is the agent itself, which is never ended." for one in self.agents)
        return (f"{known}{but}.", *kept)

    def to_fields(self) -> dict[str, object]:
        """The fields that the JSON of a plan from a cluster has in addition."""
        return {
            "inversions": list(map(inversion_document, self.inversions)),
            "notEnded": [{"namespace": one.metadata.namespace, "name": one.metadata.name} for one in self.agents],
        }


def check_node(config: AgentConfig, found: NodePods, node: str, granted: float) -> NodeChecks:
    """The plan and the checks of ``node``; ``granted`` as in ``build_plan``."""
    agents = tuple(one for one in found.pods if _is_agent(one) and not one.is_finished)
    ended = [one for one in found.pods if one not in agents]
    plan = build_plan(config, ended, node=node if ended else None, granted=granted)
    sources = {one.key: _priority_source(one).value for one in ended if not one.is_finished}
    inversions = find_inversions(config, plan, found) if plan.enabled else ()
    return NodeChecks(plan=plan, inversions=inversions, agents=agents, priority_sources=sources)


def _is_agent(pod: Pod) -> bool:
    return _AGENT_LABELS.items() <= (pod.metadata.labels or {}).items()


def _priority_source(pod: Pod) -> PrioritySource:
    known = pod.spec.priority is not None or pod.spec.priority_class_name in SYSTEM_CLASSES
    return PrioritySource.WATCH if known else PrioritySource.DEFAULT
