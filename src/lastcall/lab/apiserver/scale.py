"""``/scale``: the number of replicas of whatever has one, as a Scale of ``autoscaling/v1``.

The paths of a custom resource are those of its definition (``pkg/registry/apps/deployment/storage``,
``apiextensions-apiserver/pkg/registry/customresource``).
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from lastcall.lab.apiserver import answers, fields, media, patching, status
from lastcall.lab.apiserver.admission.chain import Attributes
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.kinds import rules
from lastcall.lab.apiserver.patches import bodies
from lastcall.lab.apiserver.request import Object, Response
from lastcall.lab.apiserver.schema.bodies import Kind
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.store import Key, Outdated, Stored

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

_SCALE = Kind("autoscaling", "v1", "Scale")
_ATTEMPTS = 10
_PATCHES = (bodies.JSON_PATCH, bodies.MERGE_PATCH, bodies.STRATEGIC)


class Paths(NamedTuple):
    """Where a kind has what a Scale shows. ``selector`` is empty if there is none."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    found: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


class Scales:
    """Serves the subresource."""

    def __init__(self, server: "ApiServer") -> None:
        self._server = server

    async def serve(self, context: Context) -> Response:
        """Get, update and patch. ApiError if there is no such object, or if the number makes no sense."""
        form = media.negotiated(context.request)
        change = await self._change(context)
        if change is None:
            stored = self._stored(context)
            return answers.one(context, scale_of(self._whole(context, stored), paths_of(context)), form, self._server)
        for _ in range(_ATTEMPTS):
            try:
                return answers.one(context, await self._write(context, change), form, self._server)
            except Outdated:
                continue
        raise self._conflict(context)

    async def _change(self, context: Context) -> Callable[[Object], Object] | None:
        if context.request.method == "GET":
            return None
        if context.request.method == "PUT":
            said = await self._server.read(context, _SCALE)
            patching.check_place(context, said)
            return lambda _: copy.deepcopy(said)
        kind = patching.media_type(context)
        if kind not in _PATCHES:
            raise status.unsupported_media_type(", ".join(_PATCHES))
        patching.check_options(context, kind)
        node = self._server.schemas.types.find(*_SCALE)
        patch = await self._server.aside(context.request, lambda: bodies.read(kind, context.request.body, node))
        return lambda scale: _checked(patch.apply(scale))

    async def _write(self, context: Context, change: Callable[[Object], Object]) -> Object:
        stored, where = self._stored(context), paths_of(context)
        whole = self._whole(context, stored)
        old = scale_of(whole, where, missing=0)
        new = change(copy.deepcopy(old))
        self._expect(context, new, old)
        new["metadata"] = {**old["metadata"]}
        new["status"] = old["status"]
        if not rules.part(new, "spec").get("replicas"):
            new["spec"] = {}  # a number of 0 is not written
        attributes = Attributes.of(context, "UPDATE", new, old)
        await self._server.admission.mutate(attributes)
        replicas = rules.part(new, "spec").get("replicas") or 0
        if replicas < 0 and not context.route.resource.custom:
            cause = fields.invalid("spec.replicas", replicas, rules.NOT_NEGATIVE)
            raise status.invalid(_SCALE.kind, _SCALE.group, context.route.name, [cause])
        await self._server.admission.validate(attributes)
        return scale_of(self._put(context, stored, whole, where, replicas), where)

    def _put(self, context: Context, stored: Stored, old: Object, where: Paths, replicas: int) -> Object:
        """The object with the number, and a generation that counts it."""
        server, resource = self._server, context.route.resource
        new = copy.deepcopy(old)
        _set(new, where.wanted, replicas)
        if new == old:
            return new
        if resource.custom and (causes := [*resource.behaviour.validate_update(new, old)]):
            raise status.invalid(resource.kind, resource.group, context.route.name, causes)
        if resource.behaviour.has_generation:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        route, manager, wall = context.route, context.manager, server.clock.wall()
        server.managed.updated(new, old, manager, resource, route.subresource, wall)
        if context.dry_run:
            return new
        return self._whole(context, server.store.put(stored.key, new, expected=stored.revision))

    def _stored(self, context: Context) -> Stored:
        route = context.route
        stored = self._server.store.get(Key(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise status.not_found(route.resource.plural, route.resource.group, route.name)
        return stored

    def _whole(self, context: Context, stored: Stored) -> Object:
        return self._server.writer.answer(stored, context.route.resource)

    def _expect(self, context: Context, new: Object, old: Object) -> None:
        said = (new.get("metadata") or {}).get("resourceVersion")
        if said and said != "0" and said != old["metadata"]["resourceVersion"]:
            raise self._conflict(context)

    def _conflict(self, context: Context) -> status.ApiError:
        resource: Resource = context.route.resource
        return status.conflict(resource.plural, resource.group, context.route.name, status.MODIFIED)


def paths_of(context: Context) -> Paths:
    """Of the built-in kinds, or those that the definition of a custom one names."""
    definition = context.route.resource.definition
    if not definition:
        return Paths()
    said = (definition.get("subresources") or {}).get("scale") or {}
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return Paths(*(tuple(part for part in (said.get(name) or "").split(".") if part) for name in names))


def scale_of(obj: Object, where: Paths, *, missing: int | None = None) -> Object:
    """The Scale of an object. A number that is 0 is not written.

    An object that says no number has the number ``missing``; ApiError if that is None.
    """
    metadata, wanted = obj["metadata"], _get(obj, where.wanted)
    wanted = missing if wanted is None else wanted
    if wanted is None:
        raise status.internal(f'the spec replicas field ".{".".join(where.wanted)}" does not exist')
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    scale["metadata"] = {name: metadata[name] for name in names if name in metadata}
    scale["spec"] = {"replicas": wanted} if wanted else {}
    scale["status"] = {"replicas": _get(obj, where.found) or 0}
    selector = _get(obj, where.selector) if where.selector else None
    if text := selector if isinstance(selector, str) else rules.selector_text(selector):
        scale["status"]["selector"] = text
    return scale


def _checked(scale: Any) -> Object:
    """What a patch has made of a Scale, without a number that is 0. ApiError if it is none any more."""
    replicas = (scale.get("spec") or {}).get("replicas") if isinstance(scale, dict) else ""
    if replicas is not None and (not isinstance(replicas, int) or isinstance(replicas, bool)):
        kind = "string" if isinstance(replicas, str) else "value"
        why = f"json: cannot unmarshal {kind} into Go struct field ScaleSpec.spec.replicas of type int32"
        raise status.invalid("", "", "", [fields.invalid("patch", fields.said(scale), why)])
    checked: Object = {**scale, "spec": {"replicas": replicas} if replicas else {}}
    return checked


def _get(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _set(obj: Object, path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        obj = rules.part(obj, name)
    obj[path[-1]] = value
