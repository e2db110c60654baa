"""``/scale``: the number of replicas of a resource, as an ``autoscaling/v1`` Scale.

The definition of a custom resource sets its paths (``pkg/registry/apps/deployment/storage``,
``apiextensions-apiserver/pkg/registry/customresource``).
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.patches import patch_bodies
from lastcall_lab.apiserver.registry import patch_requests
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.responses.response_builder import ResponseBuilder
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.storage.store import RevisionConflict, StorageKey, StoredObject
from lastcall_lab.apiserver.values import api_errors, field_errors
from lastcall_lab.apiserver.values.request import Object, Response

_SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_ATTEMPTS = 10
_PATCHES = (patch_bodies.JSON_PATCH, patch_bodies.MERGE_PATCH, patch_bodies.STRATEGIC)


class ScalePaths(NamedTuple):
    """The paths of a Scale's values in a kind. ``selector`` is empty if it has none."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    found: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


class ScaleSubresource:
    """Serves the subresource."""

    def __init__(self, registry: Registry, responses: ResponseBuilder) -> None:
        self._registry = registry
        self._responses = responses

    async def serve(self, context: RequestContext) -> Response:
        """Get, update and patch. ApiError if the object does not exist or the number is invalid."""
        form = media_types.negotiate_format(context.request)
        change = await self._change(context)
        if change is None:
            stored = self._read_stored(context)
            return self._responses.object_response(
                context, scale_of(self._whole(context, stored), paths_of(context)), form
            )
        for _ in range(_ATTEMPTS):
            try:
                return self._responses.object_response(context, await self._write(context, change), form)
            except RevisionConflict:
                continue
        raise self._conflict(context)

    async def _change(self, context: RequestContext) -> Callable[[Object], Object] | None:
        if context.request.method == "GET":
            return None
        if context.request.method == "PUT":
            said = await self._registry.read_body(context, _SCALE)
            patch_requests.check_object_place(context, said)
            return lambda _: copy.deepcopy(said)
        kind = patch_requests.patch_media_type(context)
        if kind not in _PATCHES:
            raise api_errors.unsupported_media_type_error(", ".join(_PATCHES))
        patch_requests.check_patch_options(context, kind)
        node = self._registry.schemas.types.find(*_SCALE)
        patch = await self._registry.offload(
            context.request, lambda: patch_bodies.read_patch(kind, context.request.body, node)
        )
        return lambda scale: _check_scale(patch.apply(scale))

    async def _write(self, context: RequestContext, change: Callable[[Object], Object]) -> Object:
        stored, where = self._read_stored(context), paths_of(context)
        whole = self._whole(context, stored)
        old = scale_of(whole, where, missing=0)
        new = change(copy.deepcopy(old))
        self._expect(context, new, old)
        new["metadata"] = {**old["metadata"]}
        new["status"] = old["status"]
        if not common_rules.sub_object(new, "spec").get("replicas"):
            new["spec"] = {}  # a number of 0 is not written
        attributes = AdmissionAttributes.of(context, "UPDATE", new, old)
        await self._registry.admission.mutate(attributes)
        replicas = common_rules.sub_object(new, "spec").get("replicas") or 0
        if replicas < 0 and not context.route.resource.custom:
            cause = field_errors.invalid("spec.replicas", replicas, common_rules.NOT_NEGATIVE)
            raise api_errors.invalid_error(_SCALE.kind, _SCALE.group, context.route.name, [cause])
        await self._registry.admission.validate(attributes)
        return scale_of(self._put(context, stored, whole, where, replicas), where)

    def _put(
        self, context: RequestContext, stored: StoredObject, old: Object, where: ScalePaths, replicas: int
    ) -> Object:
        """Sets the number in the object and increments the generation."""
        registry, resource = self._registry, context.route.resource
        new = copy.deepcopy(old)
        _set(new, where.wanted, replicas)
        if new == old:
            return new
        if resource.custom and (causes := [*resource.behaviour.validate_update(new, old)]):
            raise api_errors.invalid_error(resource.kind, resource.group, context.route.name, causes)
        if resource.behaviour.has_generation:
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        route, manager, wall = context.route, context.field_manager, registry.clock.wall()
        registry.managed.record_update(new, old, manager, resource, route.subresource, wall)
        if context.dry_run:
            return new
        return self._whole(context, registry.store.put(stored.key, new, expected=stored.revision))

    def _read_stored(self, context: RequestContext) -> StoredObject:
        route = context.route
        stored = self._registry.store.get(StorageKey(route.resource.storage, route.namespace, route.name))
        if stored is None:
            raise api_errors.not_found_error(route.resource.plural, route.resource.group, route.name)
        return stored

    def _whole(self, context: RequestContext, stored: StoredObject) -> Object:
        return version_conversion.to_served(stored, context.route.resource)

    def _expect(self, context: RequestContext, new: Object, old: Object) -> None:
        said = (new.get("metadata") or {}).get("resourceVersion")
        if said and said != "0" and said != old["metadata"]["resourceVersion"]:
            raise self._conflict(context)

    def _conflict(self, context: RequestContext) -> api_errors.ApiError:
        resource: ServedResource = context.route.resource
        return api_errors.conflict_error(resource.plural, resource.group, context.route.name, api_errors.MODIFIED)


def paths_of(context: RequestContext) -> ScalePaths:
    """The paths of the built-in kinds, or those of a custom kind's definition."""
    definition = context.route.resource.definition
    if not definition:
        return ScalePaths()
    said = (definition.get("subresources") or {}).get("scale") or {}
    names = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")
    return ScalePaths(*(tuple(part for part in (said.get(name) or "").split(".") if part) for name in names))


def scale_of(obj: Object, where: ScalePaths, *, missing: int | None = None) -> Object:
    """The Scale of an object. A number of 0 is omitted.

    ``missing`` is the number of an object without one; ApiError if that is None.
    """
    metadata, wanted = obj["metadata"], _get(obj, where.wanted)
    wanted = missing if wanted is None else wanted
    if wanted is None:
        raise api_errors.internal_error(f'the spec replicas field ".{".".join(where.wanted)}" does not exist')
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {"kind": "Scale", "apiVersion": "autoscaling/v1"}
    scale["metadata"] = {name: metadata[name] for name in names if name in metadata}
    scale["spec"] = {"replicas": wanted} if wanted else {}
    scale["status"] = {"replicas": _get(obj, where.found) or 0}
    selector = _get(obj, where.selector) if where.selector else None
    if text := selector if isinstance(selector, str) else common_rules.selector_text(selector):
        scale["status"]["selector"] = text
    return scale


def _check_scale(scale: Any) -> Object:
    """Validates a patched Scale, without a number of 0. ApiError if it is invalid."""
    replicas = (scale.get("spec") or {}).get("replicas") if isinstance(scale, dict) else ""
    if replicas is not None and (not isinstance(replicas, int) or isinstance(replicas, bool)):
        kind = "string" if isinstance(replicas, str) else "value"
        why = f"json: cannot unmarshal {kind} into Go struct field ScaleSpec.spec.replicas of type int32"
        raise api_errors.invalid_error(
            "", "", "", [field_errors.invalid("patch", field_errors.format_value(scale), why)]
        )
    checked: Object = {**scale, "spec": {"replicas": replicas} if replicas else {}}
    return checked


def _get(obj: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _set(obj: Object, path: tuple[str, ...], value: object) -> None:
    for name in path[:-1]:
        obj = common_rules.sub_object(obj, name)
    obj[path[-1]] = value
