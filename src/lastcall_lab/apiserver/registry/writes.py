"""Writes of objects: defaults, admission, preparation by the kind, validation, storage."""

from collections.abc import Awaitable, Callable, Iterable
from random import Random

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.patches.managed_fields import ManagedFields
from lastcall_lab.apiserver.registry.body_worker import BodyWorker
from lastcall_lab.apiserver.resources import deletion_rules, version_conversion
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import RevisionConflict, StorageKey, Store, StoredObject
from lastcall_lab.apiserver.values import api_errors, field_errors, object_meta
from lastcall_lab.apiserver.values.request import Object

Change = Callable[[Object], Awaitable[Object]]
"""From the current object, which it does not change, to the object that the client wants."""

_ATTEMPTS = 10
_MUTATED = " after mutating admission happens"


class ObjectWriter:
    """Creates and updates objects.

    Its methods return the response: the object as stored or, if it is not stored, one with kind and apiVersion.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        random: Random,
        admission: AdmissionPlugin,
        managed: ManagedFields,
        offload: BodyWorker,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._admission = admission
        self._managed = managed
        self._offload = offload

    # -- create --------------------------------------------------------------------------------------------------------

    async def create(self, context: RequestContext, obj: Object, *, recorded: bool = False) -> Object | StoredObject:
        """Creates an object. ApiError if validation or admission rejects it, or if the name is taken.

        ``recorded``: its managed fields are already final.
        """
        route, behaviour = context.route, context.route.resource.behaviour
        self._place(context, obj)
        numbered = _has_revision(context, obj)
        if context.request.method != "PATCH":
            context.warnings += object_meta.deduplicate_owners(obj)
        behaviour.default(obj)
        if not recorded:
            made = context.field_manager, route.resource, self._clock.wall()
            await self._offload(context.request, lambda: self._managed.record_create(obj, *made))
        attributes = AdmissionAttributes.of(context, "CREATE", obj)
        attributes.name = obj["metadata"].get("name", "")
        await self._admission.mutate(attributes)
        self._place(context, obj)
        context.warnings += object_meta.deduplicate_owners(obj, _MUTATED)
        if attributes.again.was_seen:
            behaviour.default(obj)
        attributes.name = self._generate_name(obj["metadata"]) or attributes.name
        object_meta.fill_system_fields(
            obj,
            namespace=route.namespace,
            wall=self._clock.wall(),
            random=self._random,
            generation=behaviour.has_generation,
        )
        behaviour.prepare_create(obj)
        object_meta.drop_empty_fields(obj)
        self._refuse(
            route.resource, obj, await self._offload(context.request, lambda: self._rules(route.resource, obj))
        )
        context.warnings += behaviour.warnings(obj)
        await self._admission.validate(attributes)
        key = StorageKey(route.resource.storage, route.namespace, obj["metadata"]["name"])
        if numbered and not context.dry_run:
            raise api_errors.ApiError(500, "", "resourceVersion should not be set on objects to be created")
        if present := self._store.get(key):
            raise _name_taken(present, route.resource)
        if context.dry_run:
            return obj
        return self._store.put(key, version_conversion.to_stored(obj, route.resource), expected=None)

    def _place(self, context: RequestContext, obj: Object) -> None:
        """The object's namespace and name must match those of the path."""
        route, metadata = context.route, obj.setdefault("metadata", {})
        if not route.resource.namespaced:
            metadata.pop("namespace", None)
        said = metadata.get("namespace") or route.namespace
        if said != route.namespace:
            raise api_errors.other_namespace_error()
        if route.namespace:
            metadata["namespace"] = route.namespace

    def _generate_name(self, metadata: Object) -> str:
        """The name generated from ``generateName``; empty if the object has a name."""
        if metadata.get("name") or not metadata.get("generateName"):
            return ""
        metadata["name"] = name = object_meta.generate_name(metadata["generateName"], self._random)
        return name

    def _rules(self, resource: ServedResource, obj: Object) -> list[api_errors.Cause]:
        shared = object_meta.check_metadata(
            obj, validate_name=resource.behaviour.validate_name, namespaced=resource.namespaced
        )
        named = object_meta.check_finalizer_names(obj) if resource.behaviour.known_finalizers else ()
        return [*shared, *named, *resource.behaviour.validate(obj)]

    # -- change --------------------------------------------------------------------------------------------------------

    async def update(self, context: RequestContext, change: Change, *, recorded: bool = False) -> Object | StoredObject:
        """Updates the route's object; calls ``change`` again after a concurrent write.

        An unchanged object is not written. ApiError as for create, and a conflict if ``change`` set another
        resourceVersion than the object has. ``recorded``: ``change`` updates the managed fields itself.
        """
        route = context.route
        key = StorageKey(route.resource.storage, route.namespace, route.name)
        for _ in range(_ATTEMPTS):
            stored = self._store.get(key)
            if stored is None:
                raise api_errors.not_found_error(route.resource.plural, route.resource.group, route.name)
            try:
                return await self._replace(context, stored, change, recorded=recorded)
            except RevisionConflict:
                continue
        raise api_errors.conflict_error(route.resource.plural, route.resource.group, route.name, api_errors.MODIFIED)

    async def _replace(
        self, context: RequestContext, stored: StoredObject, change: Change, *, recorded: bool
    ) -> Object | StoredObject:
        route, behaviour = context.route, context.route.resource.behaviour
        old = self.answer(stored, route.resource)
        new = await change(old)
        self._expect(context, new, old)
        if context.request.method != "PATCH":
            context.warnings += object_meta.deduplicate_owners(new)
        behaviour.default_change(new, old)
        if not recorded:
            made = context.field_manager, route.resource, route.subresource, self._clock.wall()
            await self._offload(context.request, lambda: self._managed.record_update(new, old, *made))
        object_meta.keep_system_fields(new, old)
        _prepare(behaviour, route.subresource, new, old)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        attributes = AdmissionAttributes.of(context, "UPDATE", new, old)
        await self._admission.mutate(attributes)
        self._place(context, new)
        context.warnings += object_meta.deduplicate_owners(new, _MUTATED)
        if attributes.again.was_seen:
            behaviour.default(new)
        object_meta.drop_empty_fields(new)
        if behaviour.has_generation and behaviour.generation_source(new) != behaviour.generation_source(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        shared = [*object_meta.check_metadata_update(new, old)]  # the generic rules and the kind report it both
        own = await self._offload(context.request, lambda: [*_violations(behaviour, route.subresource, new, old)])
        causes = [*shared, *shared, *own]
        self._refuse(route.resource, new, causes)
        context.warnings += behaviour.update_warnings(new, old)
        await self._admission.validate(attributes)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        self._managed.undo_time_changes(new, old)
        if context.dry_run or new == old:
            return new
        if deletion_rules.removes_last_hold(new, old, behaviour):
            # The response is the object as sent; watches later see the stored one.
            self._store.delete(stored.key, stored.to_object(), expected=stored.revision)
            return new
        return self._store.put(stored.key, version_conversion.to_stored(new, route.resource), expected=stored.revision)

    def _expect(self, context: RequestContext, new: Object, old: Object) -> None:
        resource, metadata = context.route.resource, new.setdefault("metadata", {})
        if resource.namespaced:
            metadata["namespace"] = metadata.get("namespace") or context.route.namespace
        name, said = context.route.name, metadata.get("resourceVersion")
        if said and not said.isdecimal():
            raise api_errors.ApiError(500, "", f'strconv.ParseUint: parsing "{said}": invalid syntax')
        if said and said != "0" and said != old["metadata"]["resourceVersion"]:
            raise api_errors.conflict_error(resource.plural, resource.group, name, api_errors.MODIFIED)
        if resource.behaviour.needs_revision and said in (None, "", "0"):
            cause = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise api_errors.invalid_error(resource.plural, resource.group, name, [cause])
        uid, found = metadata.get("uid"), old["metadata"]["uid"]
        if uid and uid != found and context.request.method != "PATCH":
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
            raise api_errors.conflict_error(resource.plural, resource.group, name, why)

    # -- internal ------------------------------------------------------------------------------------------------------

    def answer(self, stored: StoredObject, resource: ServedResource) -> Object:
        """A stored object with its kind and apiVersion."""
        return version_conversion.to_served(stored, resource)

    def _refuse(self, resource: ServedResource, obj: Object, causes: list[api_errors.Cause]) -> None:
        if causes:
            raise api_errors.invalid_error(
                resource.kind, resource.internal_group, obj["metadata"].get("name", ""), causes
            )


def _has_revision(context: RequestContext, obj: Object) -> bool:
    """Whether a new object has a resourceVersion, which the storage rejects; a PUT may have one."""
    revision = str(obj["metadata"].get("resourceVersion") or "")
    return context.request.method == "POST" and revision.isdecimal() and bool(revision.strip("0"))


def _name_taken(present: StoredObject, resource: ServedResource) -> api_errors.ApiError:
    error = api_errors.already_exists_error(resource.plural, resource.group, present.key.name)
    if present.to_object()["metadata"].get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return error


def _prepare(behaviour: KindBehaviour, part: str, new: Object, old: Object) -> None:
    match part:
        case "":
            behaviour.prepare_update(new, old)
        case "status":
            behaviour.prepare_status(new, old)
        case _:
            behaviour.prepare_part(part, new, old)


def _violations(behaviour: KindBehaviour, part: str, new: Object, old: Object) -> Iterable[api_errors.Cause]:
    match part:
        case "":
            return behaviour.validate_update(new, old)
        case "status":
            return behaviour.validate_status(new, old)
        case _:
            return behaviour.validate_part(part, new, old)
