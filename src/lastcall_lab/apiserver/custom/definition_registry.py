"""Puts stored definitions into effect: accepts names, serves kinds, and deletes objects with their definition.

Kubernetes' controllers do this some milliseconds later. Here it happens within the write, so a client can use the kind
as soon as it has the response. Each step is a version of its own, which watches see.
"""

from collections.abc import Sequence

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.custom import definition_conditions
from lastcall_lab.apiserver.custom.custom_resource import established_resources
from lastcall_lab.apiserver.custom.definition_kind import FINALIZER
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredChange, StoredChangeKind, StoredObject
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"


class DefinitionRegistry:
    """Keeps the scheme in sync with the definitions in the store."""

    def __init__(self, store: Store, scheme: ResourceScheme, clock: Clock) -> None:
        self._store = store
        self._scheme = scheme
        self._clock = clock
        self._served: dict[str, Sequence[ServedResource]] = {}

    def load(self) -> None:
        """Serves the kinds of definitions that were stored before a restart."""
        for stored in list(self._store.objects(RESOURCE)):
            self._serve(stored.to_object())
            self._settle(stored)

    def handle_change(self, change: StoredChange) -> None:
        """Handles a change of the store."""
        key = change.new.key
        if key.resource == RESOURCE and change.kind is StoredChangeKind.DELETED:
            self._withdraw(key.name)
            self._others(change.new.to_object())
        elif key.resource == RESOURCE:
            self._settle(change.new)
        elif change.kind is StoredChangeKind.DELETED:
            self._finish_deletion(key.resource)

    # -- serving -------------------------------------------------------------------------------------------------------

    def _settle(self, stored: StoredObject) -> None:
        """One step for a definition; its write triggers the next one."""
        obj = stored.to_object()
        if obj["metadata"].get("deletionTimestamp"):
            self._terminate(stored, obj)
            return
        others = [one.to_object() for one in self._store.objects(RESOURCE) if one.key != stored.key]
        if definition_conditions.settle_conditions(obj, others, wall=self._clock.wall()):
            self._store.put(stored.key, obj, expected=stored.revision)
            return
        self._serve(obj)

    def _serve(self, obj: Object) -> None:
        name = obj["metadata"]["name"]
        self._withdraw(name)
        if definition_conditions.is_true(obj, "Established"):
            self._served[name] = established_resources(obj)
            for resource in self._served[name]:
                self._scheme.add(resource)

    def _withdraw(self, name: str) -> None:
        for resource in self._served.pop(name, ()):
            self._scheme.remove(resource)

    def _others(self, gone: Object) -> None:
        """Lets other definitions of the group take the names that became free."""
        for stored in list(self._store.objects(RESOURCE)):
            if stored.to_object()["spec"]["group"] == gone["spec"]["group"]:
                self._settle(stored)

    def is_terminating(self, resource: ServedResource) -> bool:
        """Whether the definition of a custom resource is being deleted."""
        stored = self._store.get(StorageKey(RESOURCE, "", resource.qualified_name)) if resource.custom else None
        return stored is not None and bool(stored.to_object()["metadata"].get("deletionTimestamp"))

    # -- deletion ------------------------------------------------------------------------------------------------------

    def _terminate(self, stored: StoredObject, obj: Object) -> None:
        """Deletes the objects of a terminating definition, and then its finalizer."""
        if FINALIZER not in (obj["metadata"].get("finalizers") or ()):
            return
        name, wall = obj["metadata"]["name"], self._clock.wall()
        for one in list(self._store.objects(name)):
            self._delete(one)
        now = self._store.get(stored.key)
        if self._store.count(name) or now is None or now.revision != stored.revision:
            return
        definition_conditions.set_condition(
            obj, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances", wall=wall
        )
        obj["metadata"]["finalizers"] = [one for one in obj["metadata"]["finalizers"] if one != FINALIZER]
        if obj["metadata"]["finalizers"]:
            self._store.put(stored.key, obj, expected=stored.revision)
            return
        del obj["metadata"]["finalizers"]
        self._store.delete(stored.key, obj, expected=stored.revision)

    def _delete(self, stored: StoredObject) -> None:
        """Removes an object, or marks it if it has finalizers."""
        obj = stored.to_object()
        metadata = obj["metadata"]
        if not metadata.get("finalizers"):
            self._store.delete(stored.key, obj, expected=stored.revision)
        elif not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = object_meta.timestamp(self._clock.wall())
            metadata["deletionGracePeriodSeconds"] = 0
            metadata["generation"] = metadata.get("generation", 0) + 1
            self._store.put(stored.key, obj, expected=stored.revision)

    def _finish_deletion(self, resource: str) -> None:
        """Finishes the deletion of a definition when its last object is gone."""
        if resource not in self._served or self._store.count(resource):
            return
        stored = self._store.get(StorageKey(RESOURCE, "", resource))
        if stored and stored.to_object()["metadata"].get("deletionTimestamp"):
            self._settle(stored)
