"""Deletes objects: admission, the mark, and the end, in the order in which the generic registry does it."""

from typing import NamedTuple

from lastcall.lab.apiserver import deletion, renaming, status
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.kinds.base import Fate, Options
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.store import Key, Outdated, Store, Stored
from lastcall.ports import Clock

_ATTEMPTS = 10


class Removed(NamedTuple):
    """``obj`` is the object as it is now or was last, with kind and apiVersion; ``stored`` the same if it was written."""

    obj: Object
    gone: bool
    stored: Stored | None = None


class Remover:
    """Carries out what ``deletion`` decides."""

    def __init__(self, store: Store, clock: Clock, admission: Plugin) -> None:
        self._store = store
        self._clock = clock
        self._admission = admission

    async def delete(
        self, context: Context, options: Options, *, admitted: bool = False, collective: bool = False
    ) -> Removed:
        """Deletes the object that the route names. ApiError if there is none, it is another one, or somebody refuses.

        ``admitted``: nobody is asked, because the request has been admitted as what it is (an eviction).
        ``collective``: the request names no object; webhooks see an empty name.
        """
        deletion.check(options)
        route = context.route
        for _ in range(_ATTEMPTS):
            stored = self._store.get(self._key(context))
            if stored is None:
                raise status.not_found(route.resource.plural, route.resource.group, route.name)
            try:
                return await self._delete(context, stored, options, admitted=admitted, collective=collective)
            except Outdated:
                continue
        raise status.conflict(route.resource.plural, route.resource.group, route.name, status.MODIFIED)

    async def _delete(
        self, context: Context, stored: Stored, options: Options, *, admitted: bool, collective: bool
    ) -> Removed:
        old = _answer(context, stored)
        mine = _answer(context, stored)  # decoding anew is faster than a deep copy
        outcome = deletion.decide(mine, options, context.route.resource, wall=self._clock.wall())
        if outcome.fate is Fate.STAYS:
            return Removed(outcome.obj, gone=False)
        admission = None if admitted else _attributes(context, outcome.options, collective=collective)
        await self._admit(admission, old)
        gone = outcome.fate is Fate.GOES
        if options.dry_run:
            return Removed(outcome.obj, gone)
        if not outcome.marked:
            return self._remove(context, stored, old)
        if outcome.obj != old:
            marked = renaming.kept(outcome.obj, context.route.resource)
            stored = self._store.put(stored.key, marked, expected=stored.revision)
        if gone:
            return await self._end(context, stored, outcome.obj, admission)
        return Removed(outcome.obj, gone=False, stored=stored)

    async def _end(self, context: Context, stored: Stored, marked: Object, admission: Attributes | None) -> Removed:
        """Removes what is marked. Admission is asked once more, and who is faster meanwhile has done it for us."""
        await self._admit(admission, marked)
        now = self._store.get(stored.key)
        if now is stored:
            return self._remove(context, stored, marked)
        if now is None or now.object()["metadata"]["uid"] != marked["metadata"]["uid"]:
            return Removed(marked, gone=True)
        return self._remove(context, now, _answer(context, now))

    def _remove(self, context: Context, stored: Stored, obj: Object) -> Removed:
        """The end of ``stored``, which ``obj`` is a copy of."""
        last = renaming.kept(obj, context.route.resource)
        return Removed(obj, gone=True, stored=self._store.delete(stored.key, last, expected=stored.revision))

    async def _admit(self, attributes: Attributes | None, old: Object) -> None:
        if attributes:
            attributes.old = old
            await self._admission.mutate(attributes)
            await self._admission.validate(attributes)

    def _key(self, context: Context) -> Key:
        route = context.route
        return Key(route.resource.storage, route.namespace, route.name)


def _attributes(context: Context, options: Options, *, collective: bool) -> Attributes:
    route = context.route
    return Attributes(
        operation="DELETE",
        resource=route.resource,
        subresource="",
        namespace=route.namespace,
        name="" if collective else route.name,
        user=context.user,
        obj=None,
        old=None,
        dry_run=bool(options.dry_run),
        options=options.shown(),
        warnings=context.warnings,
    )


def _answer(context: Context, stored: Stored) -> Object:
    resource = context.route.resource
    return renaming.served(stored, resource)
