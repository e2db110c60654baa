"""The schemas of all kinds that are served, and the check of what is written against them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lastcall.lab.apiserver import fields, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema import bodies, custom, gojson, plain
from lastcall.lab.apiserver.schema.bodies import Kind
from lastcall.lab.apiserver.schema.decode import Converter, Decoder, Undecodable
from lastcall.lab.apiserver.schema.types import Node, Struct, Types
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.status import ApiError

_PACKAGES = {"": "core", "events.k8s.io": "core"}
"""The Go packages of groups whose names do not begin with theirs."""


class Schemas:
    """The types of all resources; ``types`` is the table behind them."""

    def __init__(self) -> None:
        self.types = Types()
        self._nodes: dict[Resource, Node | None] = {}

    def of(self, resource: Resource) -> Node | None:
        """The type of the resource's objects; None if nothing is known of it.

        ``node.at("spec").at("containers").element`` is a container; ``patch_strategy``, ``merge_key``, ``list_type``,
        ``list_keys`` and ``atomic`` say how a list or a map merges.
        """
        if resource not in self._nodes:
            found = self.types.find(resource.group, resource.version, resource.kind)
            self._nodes[resource] = custom.node(resource, self.types) if resource.custom else found
        return self._nodes[resource]

    def of_object(self, obj: Object, resource: Resource) -> Node | None:
        """The type of an object that belongs to the resource: that of a subresource such as ``scale`` is another."""
        version = obj.get("apiVersion", "")
        if resource.custom or (version, obj.get("kind")) == (resource.api_version, resource.kind):
            return self.of(resource)
        group, _, number = version.rpartition("/")
        return self.types.find(group, number, obj.get("kind", ""))

    # -- what is written -----------------------------------------------------------------------------------------------

    def read(self, context: Context, wanted: Kind | None = None, *, also: Sequence[str] = ()) -> Object:
        """The object in the body of a POST or PUT: typed, complete, with kind and apiVersion.

        ``wanted`` is what a subresource takes, if that is not the resource's own kind; ``also`` are other apiVersions
        that mean the same. ApiError if it is none, is something else, or has fields that the client does not allow.
        """
        resource = context.route.resource
        wanted = wanted or Kind(resource.group, resource.version, resource.kind)
        body = bodies.read(context.request, wanted)
        if resource.custom and wanted.group == resource.group:
            obj, complaints = self._custom(body, wanted, resource)
        else:
            obj, unknown = self._typed(body, wanted, also)
            complaints = body.complaints(unknown) if context.validation != "Ignore" else []
        self._complain(complaints, context, lambda why: bodies.unfit(body.said, wanted, why))
        return {**obj, "kind": wanted.kind, "apiVersion": wanted.api_version}

    def checked(
        self,
        obj: Object,
        context: Context,
        *,
        shown: Callable[[Object], str] | None = None,
        repeated: Sequence[str] = (),
        strategic: bool = False,
        before: Object | None = None,
        applied: bool = False,
    ) -> Object:
        """What a patch has made of an object, as it is stored, with kind and apiVersion.

        ``shown`` says what an error shows of it, the object itself if None; ``repeated`` are complaints about the patch,
        and ``strategic`` patches have other words for wrong types. ``before`` is the object as it is stored: what both
        share is not read again, and is shared by the result as well, but for the metadata. ``applied``: by a
        server-side apply, which has judged the fields of its configuration itself.
        ApiError (422) if types are wrong or if the client does not allow unknown fields and there are some.
        """
        resource = context.route.resource

        def unfit(why: str) -> ApiError:
            value = shown(obj) if shown else msgspec.json.encode(obj).decode()
            return status.invalid("", "", "", [fields.invalid("patch", value, why)])

        node = None if resource.custom else self.of(resource)
        struct = node.struct if node else None
        try:
            if resource.custom:
                decoded, unknown = custom.read(obj, resource, self.types, applied=applied)
            elif struct is not None:
                decoded, unknown = self._patched(obj, resource, struct, strategic=strategic, before=before)
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

    def typed(self, obj: Object, resource: Resource) -> Object:
        """The object with the types of its resource. ValueError if it has others, or fields that are not known."""
        node = self.of_object(obj, resource)
        try:
            if resource.custom:
                decoded, unknown = custom.read(obj, resource, self.types)
            elif node is not None and node.struct is not None:
                decoded, unknown = _decoded(obj, node.struct, Decoder)
            else:
                return obj
        except Undecodable as error:
            raise ValueError(str(error)) from None
        if unknown:
            raise ValueError("strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in unknown))
        return {**decoded, "kind": obj.get("kind"), "apiVersion": obj.get("apiVersion")}

    def mutated(self, obj: Object, resource: Resource, wanted: Kind) -> Object:
        """What a webhook has made of an object that was ``wanted``: typed, without unknown fields.

        Of a custom resource only the metadata are typed: the rules of its schema are applied later. ApiError (500) if types
        are wrong, or if it has become something else.
        """
        if resource.custom and wanted == Kind(resource.group, resource.version, resource.kind):
            try:
                return custom.read(obj, resource, self.types, applied=True)[0]
            except Undecodable as error:
                raise status.internal(str(error)) from None
        node = self.types.find(*wanted)
        if resource.custom or node is None or node.struct is None:
            return obj
        try:
            said = bodies.said(obj, wanted)
        except ValueError as error:
            raise status.internal(f"couldn't get version/kind; json parse error: {error}") from None
        found = self.types.find(*said)
        if found is None or found.struct is None:
            raise status.internal(_unregistered(said))
        if said != wanted:
            raise ApiError(500, "", _unconverted(found, wanted))
        try:
            decoded, _ = _decoded(obj, node.struct, Decoder)
        except Undecodable as error:
            raise status.internal(str(error)) from None
        decoded.setdefault("metadata", {})
        return {**decoded, "kind": wanted.kind, "apiVersion": wanted.api_version}

    def _typed(self, body: bodies.Body, wanted: Kind, also: Sequence[str]) -> tuple[Object, list[str]]:
        said = body.said
        if said.api_version in also and said.kind == wanted.kind:
            said = wanted
        node = self.types.find(*said)
        if node is None or node.struct is None:
            raise bodies.unfit(said, wanted, _unregistered(said))
        try:
            decoded = _decoded(body.obj, node.struct, Decoder)
        except Undecodable as error:
            raise bodies.unfit(said, wanted, str(error)) from None
        if said.kind != wanted.kind or _package(said.group) != _package(wanted.group):
            raise bodies.unfit(said, wanted, _unconverted(node, wanted))
        if said != wanted:
            raise _other_version(said, wanted)
        return decoded

    def _patched(
        self, obj: Object, resource: Resource, struct: Struct, *, strategic: bool, before: Object | None
    ) -> tuple[Object, list[str]]:
        """What is stored of it, and the paths of unknown fields; Undecodable if it has become something else."""
        wanted = Kind(resource.group, resource.version, resource.kind)
        if not strategic and (why := self._other_kind(obj, wanted)):
            raise Undecodable(why)
        return _decoded(obj, struct, Converter if strategic else Decoder, before)

    def _other_kind(self, obj: Object, wanted: Kind) -> str:
        """Why an object that a JSON or merge patch has made cannot be stored as what it is to be; empty if it can."""
        if isinstance(obj, dict) and (obj.get("apiVersion"), obj.get("kind")) == (wanted.api_version, wanted.kind):
            return ""
        try:
            said = bodies.said(obj, wanted)
        except gojson.Malformed as error:
            return f"couldn't get version/kind; json parse error: {error}"
        except ValueError as error:
            return str(error)
        node = self.types.find(*said)
        if node is None or node.struct is None:
            return _unregistered(said)
        same = said.kind == wanted.kind and _package(said.group) == _package(wanted.group)
        return "" if same else _unconverted(node, wanted)

    def _custom(self, body: bodies.Body, wanted: Kind, resource: Resource) -> tuple[Object, list[str]]:
        if not body.obj.get("kind"):
            why = f"Object 'Kind' is missing in '{body.data.decode(errors='replace')}'"
            raise bodies.unrecognized(wanted, why, body.data)
        try:
            obj, unknown = custom.read(body.obj, resource, self.types)
        except Undecodable as error:
            raise bodies.unfit(body.said, wanted, str(error)) from None
        if not body.obj.get("apiVersion"):
            raise _other_version(Kind("", "", body.said.kind), wanted)
        if body.said.api_version != wanted.api_version:
            raise _other_version(body.said, wanted)
        if body.said.kind != wanted.kind:
            cause = fields.invalid("kind", body.said.kind, f"must be {wanted.kind}")
            raise status.invalid(body.said.kind, wanted.group, obj["metadata"].get("name", ""), [cause])
        return obj, [*body.complaints(()), *(f'unknown field "{path}"' for path in unknown)]

    def _complain(self, complaints: Sequence[str], context: Context, unfit: Callable[[str], ApiError]) -> None:
        """Tells of repeated and unknown fields as the client has asked for it."""
        if complaints and context.validation == "Strict":
            raise unfit(f"strict decoding error: {', '.join(complaints)}")
        if complaints and context.validation == "Warn":
            context.warnings += complaints

    # -- for messages --------------------------------------------------------------------------------------------------

    def ordered(self, obj: Any, node: Node | None) -> Any:
        """The same with the fields in the order in which Go writes them; maps by their keys."""
        if node is not None and isinstance(obj, dict) and node.kind in ("struct", "map"):
            names = [name for name in node.fields if name in obj] if node.fields else sorted(obj)
            rest = [name for name in obj if name not in names]
            return {name: self.ordered(obj[name], node.at(name)) for name in (*names, *rest)}
        if node is not None and isinstance(obj, list):
            return [self.ordered(one, node.element) for one in obj]
        return obj


def _decoded(
    obj: Object, struct: Struct, made: type[Decoder], before: Object | None = None
) -> tuple[Object, list[str]]:
    unknown: list[str] = []
    try:
        decoded = plain.read(obj, struct, before)
    except plain.Odd:
        decoder = made()
        decoded, unknown = decoder.decode(obj, struct), decoder.unknown
    if obj.get("metadata") and obj["metadata"].get("managedFields") == []:
        decoded["metadata"]["managedFields"] = []  # an empty list is a word of its own: forget who owns what
    return decoded, unknown


def _unregistered(said: Kind) -> str:
    return f'no kind "{said.kind}" is registered for version "{said.api_version}" in scheme "pkg/runtime/scheme.go:111"'


def _unconverted(node: Node, wanted: Kind) -> str:
    return f"converting ({node.go}) to ({_package(wanted.group)}.{wanted.kind}): unknown conversion"


def _package(group: str) -> str:
    """The Go package of the group's internal types, as messages about conversions name it."""
    return _PACKAGES.get(group) or group.partition(".")[0]


def _other_version(said: Kind, wanted: Kind) -> ApiError:
    return status.bad_request(
        f"the API version in the data ({said.api_version}) does not match the expected API version"
        f" ({wanted.api_version})"
    )
