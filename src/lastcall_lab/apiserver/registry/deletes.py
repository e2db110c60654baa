"""Deletes objects: admission, deletion mark and removal, in the order of the generic registry."""

from typing import NamedTuple

from lastcall.ports.node import Clock
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.resources import deletion_rules, version_conversion
from lastcall_lab.apiserver.resources.kind_behaviour import DeleteOptions, DeletionFate
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import RevisionConflict, StorageKey, Store, StoredObject
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

_ATTEMPTS = 10


class RemovedObject(NamedTuple):
    """``obj`` is the current or last state, with kind and apiVersion; ``stored`` the same if it was written."""

    obj: Object
    gone: bool
    stored: StoredObject | None = None


class ObjectRemover:
    """Carries out the decisions of ``deletion_rules``."""

    def __init__(self, store: Store, clock: Clock, admission: AdmissionPlugin) -> None:
        self._store = store
        self._clock = clock
        self._admission = admission

    async def delete(
        self, context: RequestContext, options: DeleteOptions, *, admitted: bool = False, collective: bool = False
    ) -> RemovedObject:
        """Deletes the route's object. ApiError if it does not exist, a precondition fails, or admission rejects it.

        ``admitted``: skips admission, because the request was admitted in another form (an eviction). ``collective``: a
        deletecollection, for which webhooks see an empty name.
        """
        deletion_rules.check_delete_options(options)
        route = context.route
        for _ in range(_ATTEMPTS):
            stored = self._store.get(self._key(context))
            if stored is None:
                raise api_errors.not_found_error(route.resource.plural, route.resource.group, route.name)
            try:
                return await self._delete(context, stored, options, admitted=admitted, collective=collective)
            except RevisionConflict:
                continue
        raise api_errors.conflict_error(route.resource.plural, route.resource.group, route.name, api_errors.MODIFIED)

    async def _delete(
        self, context: RequestContext, stored: StoredObject, options: DeleteOptions, *, admitted: bool, collective: bool
    ) -> RemovedObject:
        old = _answer(context, stored)
        mine = _answer(context, stored)  # decoding anew is faster than a deep copy
        outcome = deletion_rules.decide_deletion(mine, options, context.route.resource, wall=self._clock.wall())
        if outcome.fate is DeletionFate.UNCHANGED:
            return RemovedObject(outcome.obj, gone=False)
        admission = None if admitted else _attributes(context, outcome.options, collective=collective)
        await self._admit(admission, old)
        gone = outcome.fate is DeletionFate.REMOVED_NOW
        if options.dry_run:
            return RemovedObject(outcome.obj, gone)
        if not outcome.marked:
            return self._remove(context, stored, old)
        if outcome.obj != old:
            marked = version_conversion.to_stored(outcome.obj, context.route.resource)
            stored = self._store.put(stored.key, marked, expected=stored.revision)
        if gone:
            return await self._end(context, stored, outcome.obj, admission)
        return RemovedObject(outcome.obj, gone=False, stored=stored)

    async def _end(
        self, context: RequestContext, stored: StoredObject, marked: Object, admission: AdmissionAttributes | None
    ) -> RemovedObject:
        """Removes a marked object. Runs admission again; a concurrent request may have removed it meanwhile."""
        await self._admit(admission, marked)
        now = self._store.get(stored.key)
        if now is stored:
            return self._remove(context, stored, marked)
        if now is None or now.to_object()["metadata"]["uid"] != marked["metadata"]["uid"]:
            return RemovedObject(marked, gone=True)
        return self._remove(context, now, _answer(context, now))

    def _remove(self, context: RequestContext, stored: StoredObject, obj: Object) -> RemovedObject:
        """Removes ``stored``, of which ``obj`` is a copy."""
        last = version_conversion.to_stored(obj, context.route.resource)
        return RemovedObject(obj, gone=True, stored=self._store.delete(stored.key, last, expected=stored.revision))

    async def _admit(self, attributes: AdmissionAttributes | None, old: Object) -> None:
        if attributes:
            attributes.old = old
            await self._admission.mutate(attributes)
            await self._admission.validate(attributes)

    def _key(self, context: RequestContext) -> StorageKey:
        route = context.route
        return StorageKey(route.resource.storage, route.namespace, route.name)


def _attributes(context: RequestContext, options: DeleteOptions, *, collective: bool) -> AdmissionAttributes:
    route = context.route
    return AdmissionAttributes(
        operation="DELETE",
        resource=route.resource,
        subresource="",
        namespace=route.namespace,
        name="" if collective else route.name,
        user=context.user,
        obj=None,
        old=None,
        dry_run=bool(options.dry_run),
        options=options.to_object(),
        warnings=context.warnings,
    )


def _answer(context: RequestContext, stored: StoredObject) -> Object:
    resource = context.route.resource
    return version_conversion.to_served(stored, resource)
