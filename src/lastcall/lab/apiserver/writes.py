"""The way of every write: defaults, admission, what the kind prepares, validation, and then the store."""

from collections.abc import Awaitable, Callable, Iterable
from random import Random

from lastcall.lab.apiserver import deletion, fields, meta, renaming, status
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.aside import Aside
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.kinds.base import Behaviour
from lastcall.lab.apiserver.managed_fields import ManagedFields
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.store import Key, Outdated, Store, Stored
from lastcall.ports import Clock

Change = Callable[[Object], Awaitable[Object]]
"""From the object as it is now, which it leaves as it is, to the object as the client wants it."""

_ATTEMPTS = 10
_MUTATED = " after mutating admission happens"


class Writer:
    """Creates and changes objects.

    The verbs return what is answered: the object as it is stored or, if it is not, one with kind and apiVersion.
    """

    def __init__(
        self, store: Store, clock: Clock, random: Random, admission: Plugin, managed: ManagedFields, aside: Aside
    ) -> None:
        self._store = store
        self._clock = clock
        self._random = random
        self._admission = admission
        self._managed = managed
        self._aside = aside

    # -- create --------------------------------------------------------------------------------------------------------

    async def create(self, context: Context, obj: Object, *, recorded: bool = False) -> Object | Stored:
        """A new object. ApiError if a rule is violated, the name is taken, or somebody refuses.

        ``recorded``: its managed fields are as they are to be.
        """
        route, behaviour = context.route, context.route.resource.behaviour
        self._place(context, obj)
        numbered = _numbered(context, obj)
        if context.request.method != "PATCH":
            context.warnings += meta.deduplicate_owners(obj)
        behaviour.default(obj)
        if not recorded:
            made = context.manager, route.resource, self._clock.wall()
            await self._aside(context.request, lambda: self._managed.created(obj, *made))
        attributes = Attributes.of(context, "CREATE", obj)
        attributes.name = obj["metadata"].get("name", "")
        await self._admission.mutate(attributes)
        self._place(context, obj)
        context.warnings += meta.deduplicate_owners(obj, _MUTATED)
        if attributes.again.seen:
            behaviour.default(obj)
        attributes.name = self._generated(obj["metadata"]) or attributes.name
        meta.fill(
            obj,
            namespace=route.namespace,
            wall=self._clock.wall(),
            random=self._random,
            generation=behaviour.has_generation,
        )
        behaviour.prepare_create(obj)
        meta.tidy(obj)
        self._refuse(route.resource, obj, await self._aside(context.request, lambda: self._rules(route.resource, obj)))
        context.warnings += behaviour.warnings(obj)
        await self._admission.validate(attributes)
        key = Key(route.resource.storage, route.namespace, obj["metadata"]["name"])
        if numbered and not context.dry_run:
            raise status.ApiError(500, "", "resourceVersion should not be set on objects to be created")
        if present := self._store.get(key):
            raise _taken(present, route.resource)
        if context.dry_run:
            return obj
        return self._store.put(key, renaming.kept(obj, route.resource), expected=None)

    def _place(self, context: Context, obj: Object) -> None:
        """The object's namespace and name must be those of the path, if both say one."""
        route, metadata = context.route, obj.setdefault("metadata", {})
        if not route.resource.namespaced:
            metadata.pop("namespace", None)
        said = metadata.get("namespace") or route.namespace
        if said != route.namespace:
            raise status.other_namespace()
        if route.namespace:
            metadata["namespace"] = route.namespace

    def _generated(self, metadata: Object) -> str:
        """The name that was made for an object which has only the beginning of one; empty if it needed none."""
        if metadata.get("name") or not metadata.get("generateName"):
            return ""
        metadata["name"] = name = meta.generated_name(metadata["generateName"], self._random)
        return name

    def _rules(self, resource: Resource, obj: Object) -> list[status.Cause]:
        shared = meta.check(obj, validate_name=resource.behaviour.validate_name, namespaced=resource.namespaced)
        named = meta.check_finalizer_names(obj) if resource.behaviour.known_finalizers else ()
        return [*shared, *named, *resource.behaviour.validate(obj)]

    # -- change --------------------------------------------------------------------------------------------------------

    async def update(self, context: Context, change: Change, *, recorded: bool = False) -> Object | Stored:
        """A new version of the object that the route names; ``change`` is called again if somebody was faster.

        An object that comes back as it was is not written. ApiError as for create, and a conflict if ``change`` set
        another resourceVersion than the object has. ``recorded``: ``change`` sees to the managed fields.
        """
        route = context.route
        key = Key(route.resource.storage, route.namespace, route.name)
        for _ in range(_ATTEMPTS):
            stored = self._store.get(key)
            if stored is None:
                raise status.not_found(route.resource.plural, route.resource.group, route.name)
            try:
                return await self._replace(context, stored, change, recorded=recorded)
            except Outdated:
                continue
        raise status.conflict(route.resource.plural, route.resource.group, route.name, status.MODIFIED)

    async def _replace(self, context: Context, stored: Stored, change: Change, *, recorded: bool) -> Object | Stored:
        route, behaviour = context.route, context.route.resource.behaviour
        old = self.answer(stored, route.resource)
        new = await change(old)
        self._expect(context, new, old)
        if context.request.method != "PATCH":
            context.warnings += meta.deduplicate_owners(new)
        behaviour.default_change(new, old)
        if not recorded:
            made = context.manager, route.resource, route.subresource, self._clock.wall()
            await self._aside(context.request, lambda: self._managed.updated(new, old, *made))
        meta.carry_over(new, old)
        _prepare(behaviour, route.subresource, new, old)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        attributes = Attributes.of(context, "UPDATE", new, old)
        await self._admission.mutate(attributes)
        self._place(context, new)
        context.warnings += meta.deduplicate_owners(new, _MUTATED)
        if attributes.again.seen:
            behaviour.default(new)
        meta.tidy(new)
        if behaviour.has_generation and behaviour.wanted(new) != behaviour.wanted(old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        shared = [*meta.check_update(new, old)]  # the generic rules and those of the kind both say it
        own = await self._aside(context.request, lambda: [*_violations(behaviour, route.subresource, new, old)])
        causes = [*shared, *shared, *own]
        self._refuse(route.resource, new, causes)
        context.warnings += behaviour.update_warnings(new, old)
        await self._admission.validate(attributes)
        new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        self._managed.settled(new, old)
        if context.dry_run or new == old:
            return new
        if deletion.goes_with(new, old, behaviour):
            # What is answered is the object as it was sent; what watches see last is the one that was stored.
            self._store.delete(stored.key, stored.object(), expected=stored.revision)
            return new
        return self._store.put(stored.key, renaming.kept(new, route.resource), expected=stored.revision)

    def _expect(self, context: Context, new: Object, old: Object) -> None:
        resource, metadata = context.route.resource, new.setdefault("metadata", {})
        if resource.namespaced:
            metadata["namespace"] = metadata.get("namespace") or context.route.namespace
        name, said = context.route.name, metadata.get("resourceVersion")
        if said and not said.isdecimal():
            raise status.ApiError(500, "", f'strconv.ParseUint: parsing "{said}": invalid syntax')
        if said and said != "0" and said != old["metadata"]["resourceVersion"]:
            raise status.conflict(resource.plural, resource.group, name, status.MODIFIED)
        if resource.behaviour.needs_revision and said in (None, "", "0"):
            cause = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise status.invalid(resource.plural, resource.group, name, [cause])
        uid, found = metadata.get("uid"), old["metadata"]["uid"]
        if uid and uid != found and context.request.method != "PATCH":
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {found}"
            raise status.conflict(resource.plural, resource.group, name, why)

    # -- within --------------------------------------------------------------------------------------------------------

    def answer(self, stored: Stored, resource: Resource) -> Object:
        """A stored object with its kind and apiVersion."""
        return renaming.served(stored, resource)

    def _refuse(self, resource: Resource, obj: Object, causes: list[status.Cause]) -> None:
        if causes:
            raise status.invalid(resource.kind, resource.internal_group, obj["metadata"].get("name", ""), causes)


def _numbered(context: Context, obj: Object) -> bool:
    """Whether a new object comes with a revision, which the storage refuses; one that a PUT makes may have one."""
    revision = str(obj["metadata"].get("resourceVersion") or "")
    return context.request.method == "POST" and revision.isdecimal() and bool(revision.strip("0"))


def _taken(present: Stored, resource: Resource) -> status.ApiError:
    error = status.already_exists(resource.plural, resource.group, present.key.name)
    if present.object()["metadata"].get("deletionTimestamp"):
        error.message = f"object is being deleted: {error.message}"
    return error


def _prepare(behaviour: Behaviour, part: str, new: Object, old: Object) -> None:
    match part:
        case "":
            behaviour.prepare_update(new, old)
        case "status":
            behaviour.prepare_status(new, old)
        case _:
            behaviour.prepare_part(part, new, old)


def _violations(behaviour: Behaviour, part: str, new: Object, old: Object) -> Iterable[status.Cause]:
    match part:
        case "":
            return behaviour.validate_update(new, old)
        case "status":
            return behaviour.validate_status(new, old)
        case _:
            return behaviour.validate_part(part, new, old)
