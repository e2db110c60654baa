"""Custom resources: decodes their objects, and derives types from the schema of their definition.

Only the metadata are typed. The rest is unstructured, without the fields that the schema does not have
(``unstructuredSchemaCoercer`` in ``k8s.io/apiextensions-apiserver``).
"""

import copy
from collections.abc import Mapping
from typing import Any

from lastcall_lab.apiserver.encoding import go_json
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.schema import pruning
from lastcall_lab.apiserver.schema.decoder import Decoder, Undecodable
from lastcall_lab.apiserver.schema.types import SchemaNode, Struct, TypeTable
from lastcall_lab.apiserver.values.request import Object

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS = {"string": "string", "boolean": "bool", "number": "float64"}
_EXTENSIONS = {
    "x-kubernetes-list-type": "list",
    "x-kubernetes-list-map-keys": "keys",
    "x-kubernetes-map-type": "map",
    "default": "default",
}


def read_custom_object(
    obj: Object, resource: ServedResource, types: TypeTable, *, applied: bool = False
) -> tuple[Object, list[str]]:
    """The object to store, and the paths of dropped fields. Undecodable if the metadata have wrong types.

    ``applied``: from a server-side apply or a webhook, which keep nulls in typed fields that are not nullable;
    validation rejects those.
    """
    metadata, decoder = obj.get("metadata"), Decoder()
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict):
        raise Undecodable(
            f"json: cannot unmarshal {go_json.json_type_name(metadata)} into Go value of type v1.ObjectMeta"
        )
    typed = decoder.decode(metadata, types.struct(_OBJECT_META))
    unknown = [f"metadata.{path}" for path in sorted(decoder.unknown)]
    rest = copy.deepcopy({name: value for name, value in obj.items() if name != "metadata"})
    schema = _schema(resource)
    unknown += pruning.prune(rest, schema)
    pruning.drop_nulls(rest, schema, untyped=applied)
    return {**rest, "metadata": typed}, unknown


def custom_schema_node(resource: ServedResource, types: TypeTable) -> SchemaNode:
    """The type of the resource's objects, as far as its schema defines it."""
    made = _DefinedTypes(types)
    schema = _schema(resource)
    fields = {name: made.facts(inner, name) for name, inner in (schema.get("properties") or {}).items()}
    text, metadata = {"type": "string"}, {"type": f"#{_OBJECT_META}"}
    fields |= {"apiVersion": text, "kind": text, "metadata": metadata}
    made.define(resource.kind, fields, schema)
    return made.node(resource.kind)


def _schema(resource: ServedResource) -> Object:
    definition = resource.definition or {}
    return (definition.get("schema") or {}).get("openAPIV3Schema") or {}


class _DefinedTypes(TypeTable):
    """The types of one schema, in addition to those of the table."""

    def __init__(self, types: TypeTable) -> None:
        super().__init__()
        self._types = types

    def struct(self, name: str) -> Struct:
        """A type of the schema, else one of the table."""
        return self._structs.get(name) or self._types.struct(name)

    def define(self, name: str, fields: Mapping[str, Any], schema: Object) -> str:
        """Defines a struct with a new name."""
        extensions = {"map": schema["x-kubernetes-map-type"]} if "x-kubernetes-map-type" in schema else {}
        extensions["open"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self._structs[name] = Struct(self, {"go": name, "fields": fields, **extensions})
        return f"#{name}"

    def facts(self, schema: Object, path: str) -> Mapping[str, Any]:
        """The facts about one field; every set field is written."""
        extensions = {ours: schema[theirs] for theirs, ours in _EXTENSIONS.items() if theirs in schema}
        return {"type": self._type(schema, path), "write": "set", **extensions}

    def _type(self, schema: Object, path: str) -> str:
        if schema.get("x-kubernetes-int-or-string"):
            return "intorstring"
        match schema.get("type"):
            case "object" if properties := schema.get("properties"):
                fields = {name: self.facts(inner, f"{path}.{name}") for name, inner in properties.items()}
                return self.define(f".{path}", fields, schema)
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return "{}" + self._type(schema["additionalProperties"], f"{path}.*")
            case "object":
                return "{}any"
            case "array" if isinstance(schema.get("items"), dict):
                return "[]" + self._type(schema["items"], f"{path}[]")
            case "integer":
                return "int32" if schema.get("format") == "int32" else "int64"
            case str(kind):
                return _SCALARS.get(kind, "any")
        return "any"
