"""What a drain is asked to do, which of the cluster's pods it is about, and what stands in its way (pure)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from lastcall.drain.planning.covering_budgets import group_pods
from lastcall.drain.planning.pod_filters import FilterFacts, FilterFate, FilterVerdict, filter_pod, list_mends
from lastcall.model.base import Facts
from lastcall.model.drain_facts import DrainNode, DrainPod, PodName, pod_name
from lastcall.model.drain_objects import DrainFacts
from lastcall.model.drain_settings import DrainSettings
from lastcall.model.label_selector import Matcher, select_everything

NAMED = 5
"""So many names of a kind are given in a sentence."""


class JudgedPod(NamedTuple):
    """A pod of one of the nodes, and its fate; ``mends`` are the options that it needs to be evicted."""

    pod: DrainPod
    verdict: FilterVerdict
    mends: Sequence[str] = ()

    @property
    def goes(self) -> bool:
        """Whether it is evicted, after the mends at the latest."""
        return self.verdict.fate is FilterFate.EVICT or bool(self.mends)


class DrainCase(NamedTuple):
    """The drain of some nodes. ``judged`` are their pods by namespace and name, and ``evicted`` those of them that go.

    ``by_namespace`` has the pods of all nodes.
    """

    facts: DrainFacts
    settings: DrainSettings
    now: datetime
    nodes: tuple[DrainNode, ...]
    judged: tuple[JudgedPod, ...]
    evicted: tuple[DrainPod, ...]
    by_namespace: Mapping[str, Sequence[DrainPod]]

    @property
    def node_names(self) -> frozenset[str]:
        """The names of the nodes."""
        return frozenset(node.name for node in self.nodes)


class DrainHolder(Facts, frozen=True):
    """The object that holds pods; ``namespace`` is empty for a cluster-scoped one."""

    kind: str
    namespace: str
    name: str


class DrainObstacle(Facts, frozen=True):
    """What keeps pods from being evicted, or from ending; ``mend`` is what a person can do about it."""

    by: DrainHolder
    pods: tuple[PodName, ...]
    why: str
    mend: str


class DrainNote(Facts, frozen=True):
    """What a person should know before the drain; ``mend`` is what can be done about it."""

    text: str
    mend: str


def build_case(
    facts: DrainFacts,
    nodes: Sequence[str],
    settings: DrainSettings,
    now: datetime,
    selects: Matcher = select_everything,
) -> DrainCase:
    """The case of these nodes, which must exist; ``selects`` chooses among their pods by labels."""
    by_name = {node.name: node for node in facts.nodes}
    wanted = set(nodes)
    known = None
    if facts.daemon_sets is not None:
        known = {(one.metadata.namespace, one.metadata.name) for one in facts.daemon_sets}
    filters = FilterFacts(settings, now, known)
    found = [pod for pod in facts.pods if pod.spec.node_name in wanted and selects(pod.metadata.labels or {})]
    judged = tuple(_judge(pod, filters) for pod in sorted(found, key=pod_name))
    return DrainCase(
        facts=facts,
        settings=settings,
        now=now,
        nodes=tuple(by_name[name] for name in nodes),
        judged=judged,
        evicted=tuple(one.pod for one in judged if one.goes),
        by_namespace=group_pods(facts.pods),
    )


def _judge(pod: DrainPod, facts: FilterFacts) -> JudgedPod:
    verdict = filter_pod(pod, facts)
    return JudgedPod(pod, verdict, list_mends(pod, facts) if verdict.fate is FilterFate.REFUSE else ())


def name_some(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return f"{', '.join(every[:NAMED])}{more}"


def name_pods(pods: Iterable[DrainPod]) -> str:
    """The first pods as ``namespace/name``, and how many more there are."""
    return name_some(pod.key for pod in pods)
