"""The workloads that need one more pod before a drain can end (pure)."""

from collections.abc import Iterator, Sequence

from lastcall.drain.planning.drain_case import DrainCase
from lastcall.drain.planning.workload_owners import find_workload
from lastcall.drain.unlocking.surge_choice import SURGEABLE_KINDS
from lastcall.drain.unlocking.surge_record import read_record
from lastcall.model.base import Facts
from lastcall.model.budgets import Budget, EvictionObstacle, EvictionRefused, decide_eviction
from lastcall.model.drain_objects import OwnerPlace
from lastcall.model.surge_facts import SurgeableWorkload, find_autoscaler


class SurgeTarget(Facts, frozen=True):
    """A workload, its pods of the drain that their budgets hold, and these budgets.

    ``drain`` names the drain in the record: its first node by name, which has one owner at a time.
    """

    kind: str
    namespace: str
    name: str
    drain: str
    pods: frozenset[str]
    """Uids."""
    budgets: tuple[Budget, ...] = ()
    is_recorded: bool = False
    """Whether an earlier run has changed it, and did not put it back."""

    @property
    def title(self) -> str:
        """Kind, namespace and name, for people."""
        return f"{self.kind} {self.namespace}/{self.name}"


def find_surge_targets(case: DrainCase, *, begins: bool) -> Sequence[SurgeTarget]:
    """One target for each workload that a run of this drain has changed before, and did not put back.

    With ``begins`` also for those of which a budget lets no pod go now, though all its pods are healthy.
    """
    drain = min(node.name for node in case.nodes)
    recorded = set(_list_recorded(case, drain))
    places = set(recorded)
    pods: dict[OwnerPlace, set[str]] = {}
    budgets: dict[OwnerPlace, tuple[Budget, ...]] = {}
    for pod in case.evicted:
        workload = find_workload(pod, case.facts)
        if workload is None:
            continue
        place = workload.kind, workload.metadata.namespace, workload.metadata.name
        pods.setdefault(place, set()).add(pod.metadata.uid)
        found = decide_eviction(pod, case.facts.budgets)
        if begins and workload.kind in SURGEABLE_KINDS and isinstance(found, EvictionRefused) and _is_healthy(found):
            places.add(place)
            budgets[place] = tuple(found.budgets)
    return [
        SurgeTarget(
            kind=place[0],
            namespace=place[1],
            name=place[2],
            drain=drain,
            pods=frozenset(pods.get(place, ())),
            budgets=budgets.get(place, ()),
            is_recorded=place in recorded,
        )
        for place in sorted(places)
    ]


def _is_healthy(refused: EvictionRefused) -> bool:
    status = refused.budgets[0].status
    return refused.why is EvictionObstacle.SPENT and status.current_healthy >= status.expected_pods


def _list_recorded(case: DrainCase, drain: str) -> Iterator[OwnerPlace]:
    for place, workload in case.facts.workloads.items():
        if _has_copied_record(workload):
            continue
        autoscaler = find_autoscaler(workload, case.facts.autoscalers)
        for subject in (workload, autoscaler) if autoscaler else (workload,):
            if (record := read_record(subject)) and record.drain == drain:
                yield place


def _has_copied_record(workload: SurgeableWorkload) -> bool:
    """A Deployment's ReplicaSets have copies of its annotations (``SetNewReplicaSetAnnotations``), which record nothing."""
    return any(one.controller and one.kind == "Deployment" for one in workload.metadata.owner_references or ())
