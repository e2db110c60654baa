"""The controllers' view of the cluster: an indexed copy of the objects that they watch."""

import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from lastcall_lab.controllers.framework.label_index import BY_LABEL, BY_SELECTOR, LabelIndex

K = TypeVar("K")
P = TypeVar("P")

Object = dict[str, Any]
"""A Kubernetes object as JSON. Objects of a view are shared and must not be changed."""


class ObjectRef(NamedTuple):
    """One object: ``resource`` is ``pods`` or ``deployments.apps``; the namespace is empty for cluster-scoped ones."""

    resource: str
    namespace: str
    name: str


class ActionRefusal(NamedTuple):
    """An object whose creation or deletion was rejected, and why."""

    name: str
    """The name of the object; empty if it was to be generated."""
    why: str


@dataclass
class View:
    """Updated by the runner. Iterates by namespace and name, so that decisions are deterministic."""

    _objects: dict[str, dict[tuple[str, str], Object]] = field(default_factory=dict)
    _free: dict[tuple[str, str], dict[str, Object]] = field(default_factory=dict)
    _owned: dict[str, dict[ObjectRef, Object]] = field(default_factory=dict)
    _controlled: dict[tuple[str, str], dict[tuple[str, str], Object]] = field(default_factory=dict)
    _on_node: dict[str, dict[tuple[str, str], Object]] = field(default_factory=dict)
    _claiming: dict[tuple[str, str], dict[tuple[str, str], Object]] = field(default_factory=dict)
    _left: set[str] = field(default_factory=set)
    _listed: set[str] = field(default_factory=set)
    _order: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    _labelled: dict[str, LabelIndex] = field(
        default_factory=lambda: {resource: LabelIndex(selectors=False) for resource in BY_LABEL}
    )
    _selecting: dict[str, LabelIndex] = field(
        default_factory=lambda: {resource: LabelIndex(selectors=True) for resource in BY_SELECTOR}
    )
    _marks: dict[str, int] = field(default_factory=dict)
    """By node, in the order of the change numbers."""
    _marked: int = 0
    _refusals: dict[tuple[str, ObjectRef], ActionRefusal] = field(default_factory=dict)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        """One object; None if it does not exist."""
        return self._objects.get(resource, {}).get((namespace, name))

    def all(self, resource: str, namespace: str = "") -> Iterator[Object]:
        """All objects of a resource, in one namespace or in all."""
        found, order = self._objects.get(resource, {}), self._order.get(resource)
        if order is None:
            order = self._order[resource] = sorted(found)
        if namespace:
            order = order[
                bisect.bisect_left(order, (namespace, "")) : bisect.bisect_left(order, (namespace + "\0", ""))
            ]
        yield from [found[place] for place in order]

    def with_labels(self, resource: str, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """Pods or EndpointSlices that have all of these labels; all of them if there are no labels."""
        return (
            self._labelled[resource].with_labels(namespace, labels) if labels else list(self.all(resource, namespace))
        )

    def selecting_labels(self, resource: str, namespace: str, labels: Mapping[str, str]) -> list[Object]:
        """Services or PodDisruptionBudgets that may select these labels: a superset of those that do."""
        return self._selecting[resource].selecting_labels(namespace, labels)

    def controlled_by(self, uid: str, resource: str) -> list[Object]:
        """The objects of a resource whose controller has that uid."""
        found = self._controlled.get((uid, resource), {})
        return [found[place] for place in sorted(found)]

    def without_controller(self, resource: str, namespace: str) -> list[Object]:
        """The objects of a resource in a namespace that have no controller."""
        found = self._free.get((resource, namespace), {})
        return [found[name] for name in sorted(found)]

    def dependents(self, uid: str) -> list[tuple[ObjectRef, Object]]:
        """All objects with an owner reference to that uid."""
        found = self._owned.get(uid, {})
        return [(place, found[place]) for place in sorted(found)]

    def on_node(self, node: str) -> list[Object]:
        """The pods bound to a node, in any phase."""
        found = self._on_node.get(node, {})
        return [found[place] for place in sorted(found)]

    @property
    def node_change_count(self) -> int:
        """How often a node, or a pod on one, has changed."""
        return self._marked

    def changed_nodes(self, since: int) -> Iterator[str]:
        """The nodes that changed since ``node_change_count`` returned that number, the latest first."""
        for node, number in reversed(self._marks.items()):
            if number <= since:
                return
            yield node

    def pods_of_claim(self, namespace: str, claim: str) -> list[Object]:
        """The pods that use a PersistentVolumeClaim, in any phase."""
        found = self._claiming.get((namespace, claim), {})
        return [found[place] for place in sorted(found)]

    def is_listed(self, resource: str) -> bool:
        """Whether the first list of a resource is complete, so that an absent object does not exist."""
        return resource in self._listed

    def is_former_owner(self, uid: str) -> bool:
        """Whether the object with that uid was seen and is gone, while dependents still refer to it."""
        return uid in self._left

    def last_refusal(self, controller: str, key: ObjectRef) -> ActionRefusal | None:
        """The rejected action of a controller's last decision about a key; None if there was none."""
        return self._refusals.get((controller, key))

    # -- updates -------------------------------------------------------------------------------------------------------

    def apply(self, resource: str, obj: Object | None, before: Object | None) -> None:
        """``obj`` is the new state, None if deleted; ``before`` is the state in the view, None if new."""
        known = self._objects.setdefault(resource, {})
        if before is not None:
            self._remove_object(resource, before, known)
        if obj is not None:
            self._add_object(resource, obj, known)
        elif before is not None and (uid := before["metadata"].get("uid", "")) in self._owned:
            self._left.add(uid)
        self._keep_order(resource, before, obj)
        for owner in (before or {"metadata": {}})["metadata"].get("ownerReferences") or ():
            if owner["uid"] not in self._owned:
                self._left.discard(owner["uid"])

    def mark_listed(self, resource: str) -> None:
        """Records that the first list of a resource is complete."""
        self._listed.add(resource)

    def drop(self, resource: str, *, gone: bool) -> list[Object]:
        """Stops tracking a resource and forgets its objects, whether ``gone`` or only no longer watched."""
        known, left = list(self.all(resource)), set(self._left)
        for obj in known:
            self.apply(resource, None, obj)
        if not gone:
            self._left &= left
        self._listed.discard(resource)
        return known

    def set_refusal(self, controller: str, key: ObjectRef, refusal: ActionRefusal | None) -> None:
        """Stores the rejected action of a decision; None for no rejection."""
        if refusal is None:
            self._refusals.pop((controller, key), None)
        else:
            self._refusals[controller, key] = refusal

    def _keep_order(self, resource: str, *changed: Object | None) -> None:
        """Keeps a sorted order once one is requested, instead of sorting tens of thousands of objects per change."""
        order, known = self._order.get(resource), self._objects[resource]
        if order is None:
            return
        for place in {_namespaced_name(one) for one in changed if one}:
            at = bisect.bisect_left(order, place)
            there = order[at : at + 1] == [place]
            if there and place not in known:
                del order[at]
            elif place in known and not there:
                order.insert(at, place)

    def _add_object(self, resource: str, obj: Object, known: dict[tuple[str, str], Object]) -> None:
        place = _namespaced_name(obj)
        known[place] = obj
        self._update_indexes(resource, place, obj, LabelIndex.add)
        if owner := controller_of(obj):
            self._controlled.setdefault((owner["uid"], resource), {})[place] = obj
        else:
            self._free.setdefault((resource, place[0]), {})[place[1]] = obj
        for owner in obj["metadata"].get("ownerReferences") or ():
            self._owned.setdefault(owner["uid"], {})[ObjectRef(resource, *place)] = obj
        if resource == "pods" and (node := obj["spec"].get("nodeName")):
            self._on_node.setdefault(node, {})[place] = obj
        for claim in claim_names_of(obj) if resource == "pods" else ():
            self._claiming.setdefault((place[0], claim), {})[place] = obj

    def _remove_object(self, resource: str, obj: Object, known: dict[tuple[str, str], Object]) -> None:
        place = _namespaced_name(obj)
        known.pop(place, None)
        self._update_indexes(resource, place, obj, LabelIndex.remove)
        if owner := controller_of(obj):
            _discard(self._controlled, (owner["uid"], resource), place)
        else:
            self._free.get((resource, place[0]), {}).pop(place[1], None)
        for owner in obj["metadata"].get("ownerReferences") or ():
            _discard(self._owned, owner["uid"], ObjectRef(resource, *place))
        if resource == "pods" and (node := obj["spec"].get("nodeName")):
            self._on_node.get(node, {}).pop(place, None)
        for claim in claim_names_of(obj) if resource == "pods" else ():
            self._claiming.get((place[0], claim), {}).pop(place, None)

    def _update_indexes(
        self,
        resource: str,
        place: tuple[str, str],
        obj: Object,
        change: Callable[[LabelIndex, tuple[str, str], Object], None],
    ) -> None:
        for indexes in (self._labelled, self._selecting):
            if index := indexes.get(resource):
                change(index, place, obj)
        node = place[1] if resource == "nodes" else obj["spec"].get("nodeName") if resource == "pods" else None
        if node:
            self._marked += 1
            self._marks.pop(node, None)
            self._marks[node] = self._marked


def claim_names_of(pod: Object) -> list[str]:
    """The names of the PersistentVolumeClaims that a pod uses, in order."""
    volumes = pod["spec"].get("volumes") or ()
    return [one["persistentVolumeClaim"]["claimName"] for one in volumes if one.get("persistentVolumeClaim")]


def controller_of(obj: Object) -> Mapping[str, Any] | None:
    """The owner reference with ``controller: true``."""
    owner: Mapping[str, Any]
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return owner
    return None


def _discard(groups: dict[K, dict[P, Object]], group: K, place: P) -> None:
    """Removes a group when it becomes empty."""
    if found := groups.get(group):
        found.pop(place, None)
        if not found:
            del groups[group]


def ref_of(resource: str, obj: Object) -> ObjectRef:
    """The resource, namespace and name of an object."""
    return ObjectRef(resource, *_namespaced_name(obj))


def _namespaced_name(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
