"""Non-resource paths: discovery, OpenAPI, version, health and metrics."""

import hashlib

import msgspec

from lastcall_lab.apiserver.catalog import discovery, openapi, openapi_protobuf
from lastcall_lab.apiserver.encoding import media_types
from lastcall_lab.apiserver.resources.scheme import ResourceScheme
from lastcall_lab.apiserver.server import health_checks
from lastcall_lab.apiserver.storage.store import Store
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object, Request, Response

VERSION: Object = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.2+lastcall-lab",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
"""The Kubernetes version whose behaviour the lab implements."""

_TEXT = "text/plain; charset=utf-8"
_AS_LIST = {"as": "APIGroupDiscoveryList", "g": "apidiscovery.k8s.io", "v": "v2"}
_OPENAPI_TYPES = ("application/json", "application/*", "*/*")


class NonResourcePaths:
    """Serves the paths that are no resources."""

    def __init__(self, scheme: ResourceScheme, store: Store) -> None:
        self._scheme = scheme
        self._store = store

    def answer(self, request: Request) -> Response | None:
        """The response; None if the path does not exist. ApiError if the method or format is not supported."""
        path = request.path.strip("/")
        first, _, rest = path.partition("/")
        exact = first in ("healthz", "livez", "readyz", "openapi", "metrics") and request.path.endswith("/")
        if exact or "//" in request.path:
            return None
        if first in ("healthz", "livez", "readyz"):
            return self._health(request, path)
        if first == "openapi":
            return self._openapi(request, rest)
        if path == "metrics":
            return Response(200, {"content-type": "text/plain; version=0.0.4; charset=utf-8"}, self._metrics())
        found = self._aggregated_document(request, path) or self._document(request, path)
        return found if found is None or request.method == "GET" or _takes_all(path) else _not_allowed()

    # -- discovery -----------------------------------------------------------------------------------------------------

    def _document(self, request: Request, path: str) -> Response | None:
        match path.split("/"):
            case [""] | ["index.html"]:
                return _json(request, {"paths": self._paths()})
            case ["version"]:
                return _json(request, VERSION)
            case ["api"]:
                return _json(request, discovery.core_versions(request.headers.get("host", "")))
            case ["apis"]:
                return _json(request, discovery.group_list(self._scheme))
            case ["apis", group]:
                found = discovery.api_group(self._scheme, group)
            case ["api", version]:
                found = discovery.resource_list(self._scheme, "", version)
            case ["apis", group, version]:
                found = discovery.resource_list(self._scheme, group, version)
            case _:
                found = None
        group = path.split("/")[1] if path.startswith("apis/") else ""
        if found is None and path.startswith(("api/", "apis/")) and self._scheme.has_group(group):
            raise api_errors.no_such_resource_error()  # an unknown version; unknown groups get plain text
        return _json(request, found) if found else None

    def _aggregated_document(self, request: Request, path: str) -> Response | None:
        """The aggregated discovery document, for clients that accept it."""
        if path not in ("api", "apis") or not _wants_aggregated(request.headers.get("accept", "")):
            return None
        found = discovery.aggregated_discovery(self._scheme, core=path == "api")
        return _tagged_response(request, msgspec.json.encode(found) + b"\n", discovery.AGGREGATED)

    def _paths(self) -> list[str]:
        named = discovery.named_groups(self._scheme)
        groups = [f"/apis/{name}" for name, _ in named]
        versions = [f"/apis/{name}/{version}" for name, versions in named for version in versions]
        others = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz")
        return sorted([*groups, *versions, *others, "/version"])

    # -- other paths ---------------------------------------------------------------------------------------------------

    def _health(self, request: Request, path: str) -> Response | None:
        excluded = request.query.get("exclude", ())
        said = health_checks.health_report(path, verbose="verbose" in request.query, excluded=excluded)
        if said is None:
            return None
        headers: dict[str, str | list[str]] = {"content-type": _TEXT, "x-content-type-options": "nosniff"}
        return Response(200, headers, said.encode())

    def _openapi(self, request: Request, path: str) -> Response | None:
        version, _, rest = path.partition("/")
        if path == "v3":
            return _json(request, openapi.openapi_index(self._scheme))
        document = (
            openapi.openapi_v2()
            if path == "v2"
            else openapi.openapi_v3(self._scheme, rest)
            if version == "v3"
            else None
        )
        if document is None:
            return None
        accepted = [one.partition(";")[0].strip() for one in (request.headers.get("accept") or "*/*").split(",")]
        if path == "v2" and accepted[0] in openapi_protobuf.MEDIA:
            return _compressed_response(request, openapi.openapi_v2_protobuf(), openapi_protobuf.MEDIA[1])
        if not any(one in _OPENAPI_TYPES for one in accepted):
            return Response(406, {"content-type": _TEXT}, b"")
        said = request.parameter("hash")
        if said and said != document.hash:
            return Response(301, {"location": f"/openapi/{path}?hash={document.hash}"}, b"")
        return _compressed_response(request, document)

    def _metrics(self) -> bytes:
        head = "# HELP apiserver_storage_objects Number of stored objects.\n# TYPE apiserver_storage_objects gauge\n"
        kinds = sorted({one.storage for one in self._scheme})
        lines = [f'apiserver_storage_objects{{resource="{one}"}} {self._store.count(one)}\n' for one in kinds]
        return (head + "".join(lines)).encode()


def _wants_aggregated(accept: str) -> bool:
    for one in accept.split(","):
        name, *rest = (part.strip() for part in one.split(";"))
        parameters = dict(part.partition("=")[::2] for part in rest)
        if name == media_types.JSON and all(parameters.get(key) == value for key, value in _AS_LIST.items()):
            return True
        if name in (media_types.JSON, "*/*") and "as" not in parameters:
            return False
    return False


def _json(request: Request, said: Object) -> Response:
    form = media_types.negotiate_format(request)
    return Response(200, {"content-type": form.media}, media_types.encode_body(said, form))


def _tagged_response(request: Request, body: bytes, content_type: str) -> Response:
    """A response with an ETag, so that the client can cache it."""
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    headers: dict[str, str | list[str]] = {"content-type": content_type, "etag": tag, "vary": "Accept"}
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers, b"")
    return Response(200, headers, body)


def _compressed_response(
    request: Request, document: openapi.OpenApiDocument, media_type: str = media_types.JSON
) -> Response:
    tag = f'"{document.hash}"'
    headers: dict[str, str | list[str]] = {"content-type": media_type, "etag": tag, "vary": "Accept-Encoding"}
    if request.parameter("hash"):
        headers["cache-control"] = "public, immutable"
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers, b"")
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(200, {**headers, "content-encoding": "gzip"}, document.compressed)
    return Response(200, headers, document.raw_bytes)


def _takes_all(path: str) -> bool:
    """Whether Go accepts every method there: lists of paths and groups, not of resources."""
    first, _, group = path.partition("/")
    return path in ("", "index.html") or (first == "apis" and "/" not in group)


def _not_allowed() -> Response:
    raise api_errors.method_not_allowed_error()
