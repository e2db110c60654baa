"""OpenAPI: Kubernetes' own documents for its groups, and documents generated from custom resource definitions.

Kubernetes' documents are stored compressed in data/openapi, and sent as they are to clients that accept gzip.
"""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from lastcall_lab.apiserver.catalog import openapi_protobuf
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.values.request import Object

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_COMMON = ("ObjectMeta", "ListMeta")


class OpenApiDocument(NamedTuple):
    """A document, compressed by gzip; ``hash`` identifies its version."""

    compressed: bytes
    hash: str

    @property
    def raw_bytes(self) -> bytes:
        """The decompressed document."""
        return gzip.decompress(self.compressed)


def openapi_v2() -> OpenApiDocument:
    """``/openapi/v2``: the built-in types. Custom resources are only in v3."""
    document = _recorded_document("v2")
    assert document is not None, "the package has it"
    return document


@cache
def openapi_v2_protobuf() -> OpenApiDocument:
    """The definitions of the v2 document, in protobuf."""
    data = openapi_protobuf.encode_document(msgspec.json.decode(openapi_v2().raw_bytes))
    return OpenApiDocument(gzip.compress(data, 6, mtime=0), _hash(data))


def openapi_index(scheme: ResourceScheme) -> Object:
    """``/openapi/v3``: the paths of the groups' documents."""
    return {"paths": {path: _place(path, scheme) for path in sorted(_served_resources(scheme))}}


def openapi_v3(scheme: ResourceScheme, path: str) -> OpenApiDocument | None:
    """``/openapi/v3/PATH``, such as ``api/v1`` or ``apis/apps/v1``; None if the group does not exist."""
    found = _served_resources(scheme).get(path)
    if found is None:
        return None
    return _recorded_document("v3-" + path.replace("/", "-")) or _document(_made_document(found))


def _served_resources(scheme: ResourceScheme) -> Mapping[str, list[ServedResource]]:
    served: dict[str, list[ServedResource]] = {}
    for one in scheme:
        served.setdefault(f"apis/{one.api_version}" if one.group else f"api/{one.version}", []).append(one)
    return served


def _place(path: str, scheme: ResourceScheme) -> Object:
    document = openapi_v3(scheme, path)
    return {"serverRelativeURL": f"/openapi/v3/{path}?hash={document.hash if document else ''}"}


@cache
def _recorded_document(name: str) -> OpenApiDocument | None:
    """A document of Kubernetes; None if there is none of this name."""
    file = resources.files("lastcall_lab.apiserver").joinpath("data", "openapi", f"{name}.json.gz")
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    return OpenApiDocument(data, _hash(data))


def _document(said: Object) -> OpenApiDocument:
    data = msgspec.json.encode(said)
    return OpenApiDocument(gzip.compress(data, 6, mtime=0), _hash(data))


def _hash(data: bytes) -> str:
    return hashlib.sha512(data).hexdigest().upper()


# -- generated documents -----------------------------------------------------------------------------------------------


def _made_document(found: list[ServedResource]) -> Object:
    """The schemas, and the paths that kubectl reads to find out which kinds support ``fieldValidation``."""
    schemas = _with_referred([f"{_META}.{name}" for name in _COMMON])
    paths: Object = {}
    for one in found:
        schemas |= _custom(one) if one.custom else _built_in(one)
        paths |= _paths(one)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.2"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _with_referred(names: list[str]) -> dict[str, Object]:
    """These definitions and all that they refer to, in the form of version 3."""
    definitions = _definitions()
    for name in names:  # the scheme can change
        names += [other for other in dict.fromkeys(_referred_names(definitions[name])) if other not in names]
    return {name: _v3_form(definitions[name]) for name in names}


def _custom(one: ServedResource) -> Mapping[str, Object]:
    schema = ((one.definition or {}).get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    text = {"type": "string"}
    metadata = {"allOf": [{"$ref": f"#/components/schemas/{_META}.ObjectMeta"}]}
    properties = {"apiVersion": text, "kind": text, **schema.get("properties", {}), "metadata": metadata}
    name = ".".join([*reversed(one.group.split(".")), one.version, one.kind])
    return {name: {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_kind(one)]}}


def _built_in(one: ServedResource) -> Mapping[str, Object]:
    kind = _kind(one)
    kinds = "x-kubernetes-group-version-kind"
    return _with_referred([name for name, body in _definitions().items() if kind in body.get(kinds, ())])


@cache
def _definitions() -> Mapping[str, Object]:
    found: Mapping[str, Object] = msgspec.json.decode(openapi_v2().raw_bytes)["definitions"]
    return found


def _referred_names(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [name for one in schema for name in _referred_names(one)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].rpartition("/")[2]] if isinstance(schema.get("$ref"), str) else []
    return own + [name for one in schema.values() for name in _referred_names(one)]


def _v3_form(schema: Any) -> Any:
    """Converts a v2 schema to v3, where references have another path and no siblings."""
    if isinstance(schema, list):
        return [_v3_form(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    changed = {key: _v3_form(value) for key, value in schema.items()}
    if isinstance(changed.get("$ref"), str):
        reference = {"$ref": changed.pop("$ref").replace("#/definitions/", "#/components/schemas/")}
        return {**changed, "allOf": [reference]} if changed else reference
    return changed


def _paths(one: ServedResource) -> Object:
    root = f"/apis/{one.api_version}" if one.group else f"/api/{one.version}"
    collection = f"{root}/namespaces/{{namespace}}/{one.plural}" if one.namespaced else f"{root}/{one.plural}"
    return {
        collection: {"get": _operation(one, "list"), "post": _operation(one, "post")},
        f"{collection}/{{name}}": {verb: _operation(one, verb) for verb in ("get", "put", "patch", "delete")},
    }


def _operation(one: ServedResource, action: str) -> Object:
    operation: Object = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": _kind(one)}
    if action in ("post", "put", "patch"):
        names = ("dryRun", "fieldManager", "fieldValidation", *(("force",) if action == "patch" else ()))
        types = {"force": "boolean"}
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": types.get(name, "string"), "uniqueItems": True}}
            for name in names
        ]
    return operation


def _kind(one: ServedResource) -> Object:
    return {"group": one.group, "kind": one.kind, "version": one.version}
