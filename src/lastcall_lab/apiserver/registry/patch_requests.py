"""PATCH requests: JSON patch, merge patch, strategic merge patch or apply, by Content-Type."""

from collections.abc import Callable, Sequence
from typing import Any

from lastcall_lab.apiserver.patches import configuration_faults, message_text, patch_bodies
from lastcall_lab.apiserver.patches.field_sets import member_paths
from lastcall_lab.apiserver.patches.server_side_apply import ApplyConflicts
from lastcall_lab.apiserver.registry.registry import Registry
from lastcall_lab.apiserver.registry.writes import Change
from lastcall_lab.apiserver.routing.request_context import RequestContext, field_manager_violations
from lastcall_lab.apiserver.routing.routes import Route
from lastcall_lab.apiserver.storage.store import StorageKey, StoredObject
from lastcall_lab.apiserver.values import api_errors, field_errors, go_format
from lastcall_lab.apiserver.values.api_errors import ApiError, Cause
from lastcall_lab.apiserver.values.request import Object

_CUSTOM = (patch_bodies.JSON_PATCH, patch_bodies.MERGE_PATCH, patch_bodies.APPLY)
_BUILT_IN = (*_CUSTOM, patch_bodies.STRATEGIC)
_WITH_STATUS = frozenset(("kind", "apiVersion", "metadata", "status"))


async def patch_object(
    context: RequestContext, registry: Registry, authorize_creation: Callable[[RequestContext], None]
) -> tuple[Object | StoredObject, bool]:
    """The object after the patch, and whether the patch created it (only an apply can).

    ``authorize_creation`` raises ApiError (403) if the user may not create the object.
    """
    kind = patch_media_type(context)
    check_patch_options(context, kind)
    if kind == patch_bodies.APPLY:
        return await _apply(context, registry, authorize_creation)
    return await registry.writer.update(context, patch_change(context, registry, kind)), False


def patch_media_type(context: RequestContext) -> str:
    """The Content-Type of the patch. ApiError if the kind does not support it."""
    kind = context.request.headers.get("content-type", "").partition(";")[0]
    if context.route.resource.custom:
        if kind not in _CUSTOM:
            raise api_errors.unsupported_media_type_error(", ".join(_CUSTOM))
    elif kind not in _BUILT_IN:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return kind


def check_patch_options(context: RequestContext, kind: str) -> None:
    """ApiError if the parameters do not fit the patch (``field_validation.ValidatePatchOptions``)."""
    manager, causes = context.request.parameter("fieldManager"), []
    if kind == patch_bodies.APPLY and not manager:
        causes.append(field_errors.value_required("fieldManager", "is required for apply patch"))
    if kind != patch_bodies.APPLY and "force" in context.request.query:
        causes.append(field_errors.forbidden("force", "may not be specified for non-apply patch"))
    causes += field_manager_violations(manager)
    if causes:
        raise api_errors.invalid_error("PatchOptions", "meta.k8s.io", "", causes)


def patch_change(context: RequestContext, registry: Registry, kind: str) -> Change:
    """The change of a patch other than apply, for resources and subresources that are whole objects."""
    node = registry.schemas.of(context.route.resource)

    def patched(obj: Object) -> Object:
        said = patch_bodies.read_patch(kind, context.request.body, node)

        def text(new: Object) -> str:
            if kind == patch_bodies.STRATEGIC:
                return go_format.go_value(said.said)
            return message_text.go_json(message_text.sort_touched(registry.schemas.sort_fields(new, node), said.said))

        strategic = kind == patch_bodies.STRATEGIC
        before = obj if may_share(context.route, said.said) else patch_bodies.own_copy(obj)
        result = registry.schemas.check_patched(
            said.apply(before), context, shown=text, repeated=said.strict, strategic=strategic, before=before
        )
        check_object_place(context, result)
        return result

    async def patched_offloaded(obj: Object) -> Object:
        return await registry.offload(context.request, lambda: patched(obj))

    return patched_offloaded


def may_share(route: Route, patch: Any) -> bool:
    """Whether the new object may share unchanged parts with the old one (pure).

    It may if nothing later changes those parts in place. This holds for a stored object when only its status is
    patched, and for kinds that declare it: their defaults are already set, and the rest stays unchanged.
    """
    if route.resource.behaviour.leaves_alone:
        return True
    return route.subresource == "status" and isinstance(patch, dict) and patch.keys() <= _WITH_STATUS


def check_object_place(context: RequestContext, obj: Object) -> None:
    """The object must match the path (``handlers.checkName``); it gets the path's namespace if it has none."""
    route, metadata = context.route, obj.setdefault("metadata", {})
    said = metadata.get("namespace") or ""
    if route.namespace and said not in ("", route.namespace):
        raise api_errors.other_namespace_error()
    if route.namespace:
        metadata["namespace"] = route.namespace
    elif said:
        del metadata["namespace"]
    name = metadata.get("name")
    if not name:
        why = f"the name of the object ({route.name} based on URL) was undeterminable: name must be provided"
        raise api_errors.bad_request_error(why)
    if name != route.name:
        raise api_errors.bad_request_error(
            f"the name of the object ({name}) does not match the name on the URL ({route.name})"
        )


# -- apply -------------------------------------------------------------------------------------------------------------


async def _apply(
    context: RequestContext, registry: Registry, authorize_creation: Callable[[RequestContext], None]
) -> tuple[Object | StoredObject, bool]:
    async def changed(obj: Object) -> Object:
        return await registry.offload(context.request, lambda: _apply_configuration(context, registry, obj))

    try:
        return await registry.writer.update(context, changed, recorded=True), False
    except ApiError as error:
        if error.reason != "NotFound" or context.route.subresource or _exists(context, registry):
            raise
    obj = await registry.offload(context.request, lambda: _apply_configuration(context, registry, None))
    if uid := obj["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        resource = context.route.resource
        raise api_errors.conflict_error(resource.plural, resource.group, context.route.name, why)
    authorize_creation(context)
    return await registry.writer.create(context, obj, recorded=True), True


def _apply_configuration(context: RequestContext, registry: Registry, live: Object | None) -> Object:
    config, strict = patch_bodies.parse_configuration(context.request.body)
    _check_configuration(context, registry, config)
    manager, wall = context.request.parameter("fieldManager"), registry.clock.wall()
    route, force = context.route, context.request.flag("force")
    try:
        new = registry.managed.apply_configuration(
            live, config, manager, route.resource, route.subresource, wall, force=force
        )
    except ApplyConflicts as error:
        raise _conflict(error) from None
    _complain(context, strict)
    result = registry.schemas.check_patched(new, context, applied=True)
    check_object_place(context, result)
    return result


def _complain(context: RequestContext, strict: Sequence[str]) -> None:
    """Warns about duplicate fields of the configuration, or rejects them if the client wants that."""
    if strict and context.field_validation == "Strict":
        raise api_errors.bad_request_error(f"error strict decoding YAML: {strict[0]}")
    if strict and context.field_validation == "Warn":
        context.warnings += strict


def _exists(context: RequestContext, registry: Registry) -> bool:
    route = context.route
    return registry.store.get(StorageKey(route.resource.storage, route.namespace, route.name)) is not None


def _check_configuration(context: RequestContext, registry: Registry, config: Object) -> None:
    """Checks kind and types of the configuration, in the order of ``FieldManager.Apply``."""
    resource, metadata = context.route.resource, config.get("metadata")
    version, kind = (said if isinstance(said := config.get(name), str) else "" for name in ("apiVersion", "kind"))
    if (version, kind) != (resource.api_version, resource.kind):
        raise api_errors.bad_request_error(f"invalid object type: {_said_kind(version, kind)}")
    metadata = metadata if isinstance(metadata, dict) else {}
    if isinstance(metadata.get("managedFields"), list):
        raise api_errors.bad_request_error("metadata.managedFields must be nil")
    wrong = configuration_faults.configuration_faults(config, registry.managed.shape_of(resource))
    if wrong:
        what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_said_kind(version, kind)}"
        text = wrong[0] if len(wrong) == 1 else "\n  ".join(["errors:", *wrong])
        raise patch_bodies.plain_error(f"failed to create typed patch object ({what}): {text}")
    config["metadata"] = metadata


def _said_kind(version: str, kind: str) -> str:
    group, _, version = version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _conflict(error: ApplyConflicts) -> ApiError:
    """The conflict error with all fields that other managers own, by manager."""
    found = {owner: list(member_paths(fields)) for owner, fields in sorted(error.fields.items())}
    causes = [
        Cause("FieldManagerConflict", f"conflict with {owner.as_text}", path)._asdict()
        for owner, owned in found.items()
        for path in owned
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [
            line
            for owner, owned in found.items()
            for line in (f"conflicts with {owner.as_text}:", *(f"- {path}" for path in owned))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, {"causes": causes})
