"""PATCH: by its Content-Type a JSON patch, a merge patch, a strategic merge patch, or an apply."""

from typing import TYPE_CHECKING

from lastcall.lab.apiserver import media, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object

if TYPE_CHECKING:
    from lastcall.lab.apiserver.server import ApiServer

_MERGE = "application/merge-patch+json"
_TYPES = (
    "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json,"
    " application/apply-patch+yaml"
)


async def patch(context: Context, server: "ApiServer") -> tuple[Object, bool]:
    """The object as it is now, and whether the patch has made it (only an apply does)."""
    kind = context.request.headers.get("content-type", "").partition(";")[0].strip()
    if kind != _MERGE:
        raise status.unsupported_media_type(_TYPES)
    said = media.decoded(context.request)

    async def change(obj: Object) -> Object:
        return server.schemas.checked(merged(obj, said), context)

    return await server.writer.update(context, change), False


def merged(target: Object, said: Object) -> Object:
    """RFC 7386."""
    result = dict(target)
    for name, value in said.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            before = result.get(name)
            result[name] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[name] = value
    return result
