"""The schemas of all served kinds, and the decoding of writes by them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lastcall_lab.apiserver.encoding import go_json, request_bodies
from lastcall_lab.apiserver.encoding.request_bodies import GroupVersionKind
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.routing.request_context import RequestContext
from lastcall_lab.apiserver.schema import custom_types, fast_decoder
from lastcall_lab.apiserver.schema.decoder import Converter, Decoder, Undecodable
from lastcall_lab.apiserver.schema.types import SchemaNode, Struct, shared_table
from lastcall_lab.apiserver.values import api_errors, field_errors
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Object

_PACKAGES = {"": "core", "events.k8s.io": "core"}
"""The Go packages of groups with a different name."""


class Schemas:
    """The types of all resources, based on the table ``types``; with those of ``optional`` (``GROUP/VERSION``)."""

    def __init__(self, optional: Sequence[str] = ()) -> None:
        self.types = shared_table(*optional)
        self._nodes: dict[ServedResource, SchemaNode | None] = {}

    def of(self, resource: ServedResource) -> SchemaNode | None:
        """The type of the resource's objects; None if it is unknown.

        ``at("spec").at("containers").element`` of a pod's type is a container; ``patch_strategy``, ``merge_key``,
        ``list_type``, ``list_keys`` and ``atomic`` define how a list or a map merges.
        """
        if resource not in self._nodes:
            found = self.types.find(resource.group, resource.version, resource.kind)
            self._nodes[resource] = custom_types.custom_schema_node(resource, self.types) if resource.custom else found
        return self._nodes[resource]

    def node_of_object(self, obj: Object, resource: ServedResource) -> SchemaNode | None:
        """The type of an object of the resource; a subresource such as ``scale`` has its own."""
        version = obj.get("apiVersion", "")
        if resource.custom or (version, obj.get("kind")) == (resource.api_version, resource.kind):
            return self.of(resource)
        group, _, number = version.rpartition("/")
        return self.types.find(group, number, obj.get("kind", ""))

    # -- writes --------------------------------------------------------------------------------------------------------

    def read(
        self, context: RequestContext, wanted: GroupVersionKind | None = None, *, also: Sequence[str] = ()
    ) -> Object:
        """Decodes the body of a POST or PUT: typed, complete, with kind and apiVersion.

        ``wanted`` is the kind of a subresource if it differs; ``also`` are equivalent apiVersions. ApiError if the body
        is invalid, of another kind, or has fields that the client's ``fieldValidation`` forbids.
        """
        resource = context.route.resource
        wanted = wanted or GroupVersionKind(resource.group, resource.version, resource.kind)
        body = request_bodies.read_body(context.request, wanted)
        if resource.custom and wanted.group == resource.group:
            obj, complaints = self._custom(body, wanted, resource)
        else:
            obj, unknown = self._type_body(body, wanted, also)
            complaints = body.strict_complaints(unknown) if context.field_validation != "Ignore" else []
        self._complain(complaints, context, lambda why: request_bodies.unfit_error(body.said, wanted, why))
        return {**obj, "kind": wanted.kind, "apiVersion": wanted.api_version}

    def check_patched(
        self,
        obj: Object,
        context: RequestContext,
        *,
        shown: Callable[[Object], str] | None = None,
        repeated: Sequence[str] = (),
        strategic: bool = False,
        before: Object | None = None,
        applied: bool = False,
    ) -> Object:
        """The object to store after a patch, with kind and apiVersion.

        ``shown`` is the object in error messages (None: the object itself). ``repeated`` are complaints about the
        patch. ``strategic`` patches have other messages for wrong types. ``before`` is the stored object: parts shared
        with it are not decoded again and stay shared in the result, except the metadata. ``applied``: by a server-side
        apply, which has already checked the fields of its configuration. ApiError (422) for wrong types, or for unknown
        fields if the client forbids them.
        """
        resource = context.route.resource

        def unfit(why: str) -> ApiError:
            value = shown(obj) if shown else msgspec.json.encode(obj).decode()
            return api_errors.invalid_error("", "", "", [field_errors.invalid("patch", value, why)])

        node = None if resource.custom else self.of(resource)
        struct = node.struct if node else None
        try:
            if resource.custom:
                decoded, unknown = custom_types.read_custom_object(obj, resource, self.types, applied=applied)
            elif struct is not None:
                decoded, unknown = self._type_patched(obj, resource, struct, strategic=strategic, before=before)
            else:
                return obj
        except Undecodable as error:
            raise unfit(str(error)) from None
        unknown = [] if applied else unknown
        self._complain([*repeated, *(f'unknown field "{path}"' for path in unknown)], context, unfit)
        metadata = decoded.get("metadata")
        if before and metadata is before["metadata"]:
            decoded["metadata"] = {**metadata}
        return {**decoded, "kind": resource.kind, "apiVersion": resource.api_version}

    def to_typed(self, obj: Object, resource: ServedResource) -> Object:
        """The object with the types of its resource. ValueError for wrong types or unknown fields."""
        node = self.node_of_object(obj, resource)
        try:
            if resource.custom:
                decoded, unknown = custom_types.read_custom_object(obj, resource, self.types)
            elif node is not None and node.struct is not None:
                decoded, unknown = _decode(obj, node.struct, Decoder)
            else:
                return obj
        except Undecodable as error:
            raise ValueError(str(error)) from None
        if unknown:
            raise ValueError("strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown))
        return {**decoded, "kind": obj.get("kind"), "apiVersion": obj.get("apiVersion")}

    def check_mutated(self, obj: Object, resource: ServedResource, wanted: GroupVersionKind) -> Object:
        """The object after a webhook's change (``wanted`` before): typed, without unknown fields.

        Only the metadata of a custom resource are typed: its schema applies later. ApiError (500) for wrong types or a
        changed kind.
        """
        if resource.custom and wanted == GroupVersionKind(resource.group, resource.version, resource.kind):
            try:
                return custom_types.read_custom_object(obj, resource, self.types, applied=True)[0]
            except Undecodable as error:
                raise api_errors.internal_error(str(error)) from None
        node = self.types.find(*wanted)
        if resource.custom or node is None or node.struct is None:
            return obj
        try:
            said = request_bodies.kind_of_body(obj, wanted)
        except ValueError as error:
            raise api_errors.internal_error(f"couldn't get version/kind; json parse error: {error}") from None
        found = self.types.find(*said)
        if found is None or found.struct is None:
            raise api_errors.internal_error(_unregistered_text(said))
        if said != wanted:
            raise ApiError(500, "", _unconverted_text(found, wanted))
        try:
            decoded, _ = _decode(obj, node.struct, Decoder)
        except Undecodable as error:
            raise api_errors.internal_error(str(error)) from None
        decoded.setdefault("metadata", {})
        return {**decoded, "kind": wanted.kind, "apiVersion": wanted.api_version}

    def _type_body(
        self, body: request_bodies.RequestBody, wanted: GroupVersionKind, also: Sequence[str]
    ) -> tuple[Object, list[str]]:
        said = body.said
        if said.api_version in also and said.kind == wanted.kind:
            said = wanted
        node = self.types.find(*said)
        if node is None or node.struct is None:
            raise request_bodies.unfit_error(said, wanted, _unregistered_text(said))
        try:
            decoded = _decode(body.obj, node.struct, Decoder)
        except Undecodable as error:
            raise request_bodies.unfit_error(said, wanted, str(error)) from None
        if said.kind != wanted.kind or _package(said.group) != _package(wanted.group):
            raise request_bodies.unfit_error(said, wanted, _unconverted_text(node, wanted))
        if said != wanted:
            raise _other_version(said, wanted)
        return decoded

    def _type_patched(
        self, obj: Object, resource: ServedResource, struct: Struct, *, strategic: bool, before: Object | None
    ) -> tuple[Object, list[str]]:
        """The object to store, and the paths of unknown fields; Undecodable if its kind has changed."""
        wanted = GroupVersionKind(resource.group, resource.version, resource.kind)
        if not strategic and (why := self._other_kind(obj, wanted)):
            raise Undecodable(why)
        return _decode(obj, struct, Converter if strategic else Decoder, before)

    def _other_kind(self, obj: Object, wanted: GroupVersionKind) -> str:
        """Why the result of a JSON or merge patch has the wrong kind; empty if it has the right one."""
        if isinstance(obj, dict) and (obj.get("apiVersion"), obj.get("kind")) == (wanted.api_version, wanted.kind):
            return ""
        try:
            said = request_bodies.kind_of_body(obj, wanted)
        except go_json.MalformedJson as error:
            return f"couldn't get version/kind; json parse error: {error}"
        except ValueError as error:
            return str(error)
        node = self.types.find(*said)
        if node is None or node.struct is None:
            return _unregistered_text(said)
        same = said.kind == wanted.kind and _package(said.group) == _package(wanted.group)
        return "" if same else _unconverted_text(node, wanted)

    def _custom(
        self, body: request_bodies.RequestBody, wanted: GroupVersionKind, resource: ServedResource
    ) -> tuple[Object, list[str]]:
        if not body.obj.get("kind"):
            why = f"Object 'Kind' is missing in '{body.data.decode(errors='replace')}'"
            raise request_bodies.unrecognized_error(wanted, why, body.data)
        try:
            obj, unknown = custom_types.read_custom_object(body.obj, resource, self.types)
        except Undecodable as error:
            raise request_bodies.unfit_error(body.said, wanted, str(error)) from None
        if not body.obj.get("apiVersion"):
            raise _other_version(GroupVersionKind("", "", body.said.kind), wanted)
        if body.said.api_version != wanted.api_version:
            raise _other_version(body.said, wanted)
        if body.said.kind != wanted.kind:
            cause = field_errors.invalid("kind", body.said.kind, f"must be {wanted.kind}")
            raise api_errors.invalid_error(body.said.kind, wanted.group, obj["metadata"].get("name", ""), [cause])
        return obj, [*body.strict_complaints(()), *(f'unknown field "{path}"' for path in unknown)]

    def _complain(self, complaints: Sequence[str], context: RequestContext, unfit: Callable[[str], ApiError]) -> None:
        """Reports duplicate and unknown fields according to ``fieldValidation``."""
        if complaints and context.field_validation == "Strict":
            raise unfit(f"strict decoding error: {', '.join(complaints)}")
        if complaints and context.field_validation == "Warn":
            context.warnings += complaints

    # -- for messages --------------------------------------------------------------------------------------------------

    def sort_fields(self, obj: Any, node: SchemaNode | None) -> Any:
        """The object with its fields in Go's order, and maps sorted by key."""
        if node is not None and isinstance(obj, dict) and node.kind in ("struct", "map"):
            names = [name for name in node.fields if name in obj] if node.fields else sorted(obj)
            rest = [name for name in obj if name not in names]
            return {name: self.sort_fields(obj[name], node.at(name)) for name in (*names, *rest)}
        if node is not None and isinstance(obj, list):
            return [self.sort_fields(one, node.element) for one in obj]
        return obj


def _decode(obj: Object, struct: Struct, made: type[Decoder], before: Object | None = None) -> tuple[Object, list[str]]:
    unknown: list[str] = []
    try:
        decoded = fast_decoder.decode_plain(obj, struct, before)
    except fast_decoder.NeedsFullDecoder:
        decoder = made()
        decoded, unknown = decoder.decode(obj, struct), decoder.unknown
    if obj.get("metadata") and obj["metadata"].get("managedFields") == []:
        decoded["metadata"]["managedFields"] = []  # an empty list is explicit: it resets the field ownership
    return decoded, unknown


def _unregistered_text(said: GroupVersionKind) -> str:
    return f'no kind "{said.kind}" is registered for version "{said.api_version}" in scheme "pkg/runtime/scheme.go:111"'


def _unconverted_text(node: SchemaNode, wanted: GroupVersionKind) -> str:
    return f"converting ({node.go_type}) to ({_package(wanted.group)}.{wanted.kind}): unknown conversion"


def _package(group: str) -> str:
    """The Go package of the group's internal types, as named in conversion errors."""
    return _PACKAGES.get(group) or group.partition(".")[0]


def _other_version(said: GroupVersionKind, wanted: GroupVersionKind) -> ApiError:
    return api_errors.bad_request_error(
        f"the API version in the data ({said.api_version}) does not match the expected API version"
        f" ({wanted.api_version})"
    )
