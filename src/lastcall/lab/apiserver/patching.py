"""PATCH: by its Content-Type a JSON patch, a merge patch, a strategic merge patch, or an apply."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lastcall.lab.apiserver import fields, status
from lastcall.lab.apiserver.context import Context, manager_causes
from lastcall.lab.apiserver.patches import bodies, faults, go, shown
from lastcall.lab.apiserver.patches.applying import Conflicts
from lastcall.lab.apiserver.patches.field_sets import paths
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.routes import Route
from lastcall.lab.apiserver.status import ApiError, Cause
from lastcall.lab.apiserver.store import Key, Stored

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer
    from lastcall.lab.apiserver.writes import Change

_CUSTOM = (bodies.JSON_PATCH, bodies.MERGE_PATCH, bodies.APPLY)
_BUILT_IN = (*_CUSTOM, bodies.STRATEGIC)
_WITH_STATUS = frozenset(("kind", "apiVersion", "metadata", "status"))


async def patch(context: Context, server: "ApiServer") -> tuple[Object | Stored, bool]:
    """The object as it is now, and whether the patch has made it (only an apply does)."""
    kind = media_type(context)
    check_options(context, kind)
    if kind == bodies.APPLY:
        return await _apply(context, server)
    return await server.writer.update(context, change(context, server, kind)), False


def media_type(context: Context) -> str:
    """The Content-Type of the patch. ApiError if objects of this kind take no such patches."""
    kind = context.request.headers.get("content-type", "").partition(";")[0]
    if context.route.resource.custom:
        if kind not in _CUSTOM:
            raise status.unsupported_media_type(", ".join(_CUSTOM))
    elif kind not in _BUILT_IN:
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return kind


def check_options(context: Context, kind: str) -> None:
    """ApiError if the parameters do not go with the patch (``validation.ValidatePatchOptions``)."""
    manager, causes = context.request.parameter("fieldManager"), []
    if kind == bodies.APPLY and not manager:
        causes.append(fields.required("fieldManager", "is required for apply patch"))
    if kind != bodies.APPLY and "force" in context.request.query:
        causes.append(fields.forbidden("force", "may not be specified for non-apply patch"))
    causes += manager_causes(manager)
    if causes:
        raise status.invalid("PatchOptions", "meta.k8s.io", "", causes)


def change(context: Context, server: "ApiServer", kind: str) -> "Change":
    """What a patch that is no apply makes of the object; for resources and for subresources that are whole objects."""
    node = server.schemas.of(context.route.resource)

    def patched(obj: Object) -> Object:
        said = bodies.read(kind, context.request.body, node)

        def text(new: Object) -> str:
            if kind == bodies.STRATEGIC:
                return go.text(said.said)
            return shown.text(shown.touched(server.schemas.ordered(new, node), said.said))

        strategic = kind == bodies.STRATEGIC
        before = obj if shares(context.route, said.said) else bodies.own(obj)
        result = server.schemas.checked(
            said.apply(before), context, shown=text, repeated=said.strict, strategic=strategic, before=before
        )
        check_place(context, result)
        return result

    async def patched_aside(obj: Object) -> Object:
        return await server.aside(context.request, lambda: patched(obj))

    return patched_aside


def shares(route: Route, patch: Any) -> bool:
    """Whether the new object may share with the old one what a patch leaves as it was (pure).

    It may if nobody changes that in place afterwards. Nobody does to what is stored if it is the status that is patched
    and nothing else, nor in kinds that say so of themselves: defaults are there already, and all else stays.
    """
    if route.resource.behaviour.leaves_alone:
        return True
    return route.subresource == "status" and isinstance(patch, dict) and patch.keys() <= _WITH_STATUS


def check_place(context: Context, obj: Object) -> None:
    """The object must be the one of the path (``handlers.checkName``); it gets the path's namespace if it has none."""
    route, metadata = context.route, obj.setdefault("metadata", {})
    said = metadata.get("namespace") or ""
    if route.namespace and said not in ("", route.namespace):
        raise status.other_namespace()
    if route.namespace:
        metadata["namespace"] = route.namespace
    elif said:
        del metadata["namespace"]
    name = metadata.get("name")
    if not name:
        why = f"the name of the object ({route.name} based on URL) was undeterminable: name must be provided"
        raise status.bad_request(why)
    if name != route.name:
        raise status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({route.name})")


# -- apply -------------------------------------------------------------------------------------------------------------


async def _apply(context: Context, server: "ApiServer") -> tuple[Object | Stored, bool]:
    async def changed(obj: Object) -> Object:
        return await server.aside(context.request, lambda: _applied(context, server, obj))

    try:
        return await server.writer.update(context, changed, recorded=True), False
    except ApiError as error:
        if error.reason != "NotFound" or context.route.subresource or _exists(context, server):
            raise
    obj = await server.aside(context.request, lambda: _applied(context, server, None))
    if uid := obj["metadata"].get("uid"):
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        resource = context.route.resource
        raise status.conflict(resource.plural, resource.group, context.route.name, why)
    server.authorize_creation(context)
    return await server.writer.create(context, obj, recorded=True), True


def _applied(context: Context, server: "ApiServer", live: Object | None) -> Object:
    config, strict = bodies.configuration(context.request.body)
    _check_configuration(context, server, config)
    manager, wall = context.request.parameter("fieldManager"), server.clock.wall()
    route, force = context.route, context.request.flag("force")
    try:
        new = server.managed.applied(live, config, manager, route.resource, route.subresource, wall, force=force)
    except Conflicts as error:
        raise _conflict(error) from None
    _complain(context, strict)
    result = server.schemas.checked(new, context, applied=True)
    check_place(context, result)
    return result


def _complain(context: Context, strict: Sequence[str]) -> None:
    """Fields that are in the configuration more than once are told, or refused if the client wants that."""
    if strict and context.validation == "Strict":
        raise status.bad_request(f"error strict decoding YAML: {strict[0]}")
    if strict and context.validation == "Warn":
        context.warnings += strict


def _exists(context: Context, server: "ApiServer") -> bool:
    route = context.route
    return server.store.get(Key(route.resource.storage, route.namespace, route.name)) is not None


def _check_configuration(context: Context, server: "ApiServer", config: Object) -> None:
    """It must say what it is, and be what the types say. The order of the rules is that of ``FieldManager.Apply``."""
    resource, metadata = context.route.resource, config.get("metadata")
    version, kind = (said if isinstance(said := config.get(name), str) else "" for name in ("apiVersion", "kind"))
    if (version, kind) != (resource.api_version, resource.kind):
        raise status.bad_request(f"invalid object type: {_said_kind(version, kind)}")
    metadata = metadata if isinstance(metadata, dict) else {}
    if isinstance(metadata.get("managedFields"), list):
        raise status.bad_request("metadata.managedFields must be nil")
    wrong = faults.faults(config, server.managed.shape(resource))
    if wrong:
        what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {_said_kind(version, kind)}"
        text = wrong[0] if len(wrong) == 1 else "\n  ".join(["errors:", *wrong])
        raise bodies.plain(f"failed to create typed patch object ({what}): {text}")
    config["metadata"] = metadata


def _said_kind(version: str, kind: str) -> str:
    group, _, version = version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _conflict(error: Conflicts) -> ApiError:
    """All fields that others own, by owner."""
    found = {owner: list(paths(fields)) for owner, fields in sorted(error.fields.items())}
    causes = [
        Cause("FieldManagerConflict", f"conflict with {owner.shown}", path)._asdict()
        for owner, owned in found.items()
        for path in owned
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = [
            line
            for owner, owned in found.items()
            for line in (f"conflicts with {owner.shown}:", *(f"- {path}" for path in owned))
        ]
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return ApiError(409, "Conflict", message, {"causes": causes})
