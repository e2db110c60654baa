"""Whether the other nodes have room for the pods of a drain: requests, and slots for volumes (pure).

First fit, in the order of the pods: a node that once had no room for a kind of pod has none later either, so that the time
is linear in the pods and in the kinds of pods times the nodes. The scheduler knows more rules; a note says that there is no
room, never that there is.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lastcall.drain.planning.drain_case import DrainCase, DrainNote, name_pods
from lastcall.drain.planning.node_fit import may_run_on
from lastcall.drain.planning.node_obstacles import describe_absence
from lastcall.drain.planning.pod_filters import controller_of, is_of_daemon_set
from lastcall.drain.planning.volume_notes import pod_volumes
from lastcall.model.drain_facts import DrainContainer, DrainNode, DrainPod, Quantity
from lastcall.model.drain_objects import DrainFacts
from lastcall.model.quantities import parse_quantity

Amounts = Mapping[str, int]
"""By resource: thousandths of ``cpu``, bytes, or a number."""


def list_room_notes(case: DrainCase) -> Iterator[DrainNote]:
    """Pods for which the other nodes have no room, and those whose volumes no other node has a slot for."""
    nodes = [node for node in case.facts.nodes if node.name not in case.node_names and _takes_pods(node)]
    moving = [pod for pod in case.evicted if _is_made_again(pod)]
    if not moving:
        return
    if any(node.status.allocatable for node in case.facts.nodes):
        yield from _note_capacity(case, moving, nodes)
    if case.facts.csi_nodes:
        yield from _note_slots(case, moving, nodes)


def _note_capacity(case: DrainCase, moving: Sequence[DrainPod], nodes: Sequence[DrainNode]) -> Iterator[DrainNote]:
    free = {node.name: dict(_read_amounts(node.status.allocatable)) for node in nodes if node.status.allocatable}
    for pod in case.facts.pods:
        if pod.spec.node_name in free and not pod.is_finished:
            _take(free[pod.spec.node_name], pod_requests(pod))
    asked = [(pod, pod_requests(pod)) for pod in moving]
    if homeless := _find_homeless(asked, [node for node in nodes if node.name in free], free):
        where = "no other node takes pods" if not free else "no other node has room by requests, selectors and taints"
        yield DrainNote(text=f"{where} for: {name_pods(homeless)}", mend="add a node, or free some, before the drain")


def _note_slots(case: DrainCase, moving: Sequence[DrainPod], nodes: Sequence[DrainNode]) -> Iterator[DrainNote]:
    free = _free_slots(case.facts, nodes)
    asked = [(pod, slots) for pod in moving if (slots := _attached_volumes(pod, case.facts))]
    if not asked:
        return
    if homeless := _find_homeless(asked, [node for node in nodes if node.name in free], free):
        yield DrainNote(
            text=f"no other node can attach their volumes (CSINode allocatable.count): {name_pods(homeless)}",
            mend="add a node, or free volumes of the same driver, before the drain",
        )


def _free_slots(facts: DrainFacts, nodes: Sequence[DrainNode]) -> dict[str, dict[str, int]]:
    """By node the slots that are left of each driver; a driver without a limit has as many as are needed."""
    free: dict[str, dict[str, int]] = {}
    for node in nodes:
        known = facts.csi_nodes.get(node.name)
        limits = {one.name: one.allocatable for one in (known.spec.drivers if known else None) or ()}
        free[node.name] = {
            _slots_of(name): limit.count if limit and limit.count is not None else 2**31
            for name, limit in limits.items()
        }
    for pod in facts.pods:
        if pod.spec.node_name in free and not pod.is_finished:
            _take(free[pod.spec.node_name], _attached_volumes(pod, facts))
    return free


def _attached_volumes(pod: DrainPod, facts: DrainFacts) -> Amounts:
    return Counter(_slots_of(volume.spec.csi.driver) for volume in pod_volumes(pod, facts) if volume.spec.csi)


def _slots_of(driver: str) -> str:
    """The slots as a resource, of which a node without the driver has none."""
    return f"slots/{driver}"


def _find_homeless(
    asked: Sequence[tuple[DrainPod, Amounts]], nodes: Sequence[DrainNode], free: Mapping[str, dict[str, int]]
) -> list[DrainPod]:
    """The pods for which no node is left when the pods before them have been placed."""
    homeless: list[DrainPod] = []
    begin: dict[Any, int] = defaultdict(int)
    for pod, amounts in asked:
        kind = _kind_of(pod, amounts)
        at = begin[kind]
        while at < len(nodes) and not (_fits(free[nodes[at].name], amounts) and may_run_on(pod, nodes[at])):
            at += 1
        begin[kind] = at
        if at == len(nodes):
            homeless.append(pod)
        else:
            _take(free[nodes[at].name], amounts)
    return homeless


def _kind_of(pod: DrainPod, amounts: Amounts) -> Any:
    """Equal for pods that the same nodes have room for."""
    spec = pod.spec
    selector = tuple(sorted((spec.node_selector or {}).items()))
    return tuple(sorted(amounts.items())), selector, spec.affinity, spec.tolerations


def _fits(free: Amounts, amounts: Amounts) -> bool:
    """What a node does not tell of its own resources limits nothing; of others (``acme.io/gpu``) it has none."""
    return all(
        free.get(name, 0) >= amount for name, amount in amounts.items() if amount and (name in free or "/" in name)
    )


def _take(free: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        if name in free:
            free[name] -= amount


def _takes_pods(node: DrainNode) -> bool:
    return not node.spec.unschedulable and not describe_absence(node)


def _is_made_again(pod: DrainPod) -> bool:
    return not pod.is_finished and controller_of(pod) is not None and not is_of_daemon_set(pod)


def pod_requests(pod: DrainPod) -> Amounts:
    """What the pod asks for, by its containers and sidecars or its largest init container, and its own slot."""
    spec = pod.spec
    total: Counter[str] = Counter({"pods": 1})
    for one in spec.containers:
        total.update(_container_amounts(one))
    first: Counter[str] = Counter()
    for one in spec.init_containers or ():
        if one.restart_policy == "Always":
            total.update(_container_amounts(one))
        else:
            first |= Counter(_container_amounts(one))
    total |= first
    if spec.overhead:
        total.update(_read_amounts(spec.overhead))
    return total


def _container_amounts(container: DrainContainer) -> Amounts:
    return _read_amounts(container.resources.requests if container.resources else None)


def _read_amounts(quantities: Mapping[str, Quantity] | None) -> Amounts:
    return {name: _amount(name, str(quantity)) for name, quantity in (quantities or {}).items()}


@lru_cache(maxsize=4096)
def _amount(name: str, text: str) -> int:
    """Rounded up; 0 for what is no quantity."""
    try:
        return math.ceil(parse_quantity(text) * (1000 if name == "cpu" else 1))
    except ValueError:
        return 0
