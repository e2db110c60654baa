"""``metadata.managedFields``: who wrote which field last, kept with every write; and server-side apply."""

from collections.abc import Callable

from lastcall.lab.apiserver import meta
from lastcall.lab.apiserver.patches import applying, owners
from lastcall.lab.apiserver.patches.applying import Applied
from lastcall.lab.apiserver.patches.comparing import Difference, compared
from lastcall.lab.apiserver.patches.field_sets import LEAF, FieldSet, field, without
from lastcall.lab.apiserver.patches.shapes import Shape
from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.schema import Node
from lastcall.lab.apiserver.scheme import Resource, Scheme

_SHARED = ("kind", "apiVersion", "metadata", "status")


class ManagedFields:
    """Keeps the record up to date with every write. ``node_of`` says what is known of a resource's type.

    The record is made of what the client has sent and what it defaults to, before admission and before the kind takes
    back what this way of writing may not change; Kubernetes does the same.
    """

    def __init__(self, node_of: Callable[[Resource], Node | None], scheme: Scheme) -> None:
        self._node_of = node_of
        self._scheme = scheme
        self._shapes: dict[Resource, Shape] = {}
        self._ignored: dict[tuple[Resource, str], FieldSet] = {}

    def created(self, obj: Object, manager: str, resource: Resource, wall: float) -> None:
        """All fields of a new object are the manager's, but for those that objects of its kind have anyhow."""
        claims = owners.given(obj, None, subresource=False)
        obj["metadata"].pop("managedFields", None)
        changes = self._changes(self._zero(resource), obj, resource, "")
        owner = owners.updater(manager, resource.api_version)
        self._keep(obj, owners.updated(claims, changes, owner, version=resource.api_version, now=meta.timestamp(wall)))

    def posted(self, obj: Object, shape: Shape, manager: str, subresource: str, wall: float) -> None:
        """The same for an object that is never stored; ``shape`` is that of its kind."""
        obj["metadata"].pop("managedFields", None)
        owner = owners.updater(manager, obj["apiVersion"], subresource)
        changes = compared(shape.zero, obj, shape)
        self._keep(obj, owners.updated({}, changes, owner, version=obj["apiVersion"], now=meta.timestamp(wall)))

    def updated(
        self, new: Object, old: Object, manager: str, resource: Resource, subresource: str, wall: float
    ) -> None:
        """The fields that differ from ``old`` are the manager's now. Objects without a record stay without one."""
        claims = owners.given(new, old, subresource=bool(subresource))
        new["metadata"].pop("managedFields", None)
        if not claims:
            return
        version = resource.api_version
        changes = self._changes(_unmanaged(old), new, resource, subresource)
        owner = owners.updater(manager, version, subresource)
        claims = owners.updated(
            self._served(claims, resource), changes, owner, version=version, now=meta.timestamp(wall)
        )
        self._keep(new, claims)

    def applied(
        self,
        live: Object | None,
        config: Object,
        manager: str,
        resource: Resource,
        subresource: str,
        wall: float,
        *,
        force: bool,
    ) -> Object:
        """What the object becomes by a configuration, with its record; ``live`` None if there is none yet.

        The configuration must be one that ``faults`` finds nothing in. ``applying.Conflicts`` if fields of others would
        change, unless ``force``.
        """
        shape, now = self.shape(resource), meta.timestamp(wall)
        ignored = self.ignored(resource, subresource)
        claims = self._served(owners.decoded((live or config)["metadata"].get("managedFields") or ()), resource)
        before = _unmanaged(live) if live else self._blank(resource)
        if not claims:
            first = owners.updater(owners.BEFORE_FIRST_APPLY, resource.api_version, subresource)
            changes = self._changes(self._zero(resource), before, resource, subresource)
            claims = owners.updated({}, changes, first, version=resource.api_version, now=now)
        owner = owners.applier(manager, subresource)
        apply = applying.by_kubectl if manager == applying.KUBECTL else applying.applied
        result: Applied = apply(
            before, config, claims, owner, shape=shape, version=resource.api_version, ignored=ignored, force=force
        )
        claims = result.claims
        if owner in claims and not result.same:
            claims = {**claims, owner: claims[owner]._replace(time=now)}
        new = {**result.obj, "metadata": dict(result.obj["metadata"])}
        self._keep(new, claims)
        return new

    def settled(self, new: Object, old: Object) -> None:
        """A write that changes nothing but the times of the record changes nothing."""
        metadata, before = new["metadata"], old["metadata"]
        said, was = metadata.get("managedFields"), before.get("managedFields")
        if said == was or not said or not was or _unmanaged(new) != _unmanaged(old):
            return
        if owners.timeless(said) == owners.timeless(was):
            metadata["managedFields"] = was

    def shape(self, resource: Resource) -> Shape:
        """How ownership sees the objects of a resource."""
        shape = self._shapes.get(resource)
        if shape is None:
            shape = self._shapes[resource] = Shape(self._node_of(resource))
        return shape

    def ignored(self, resource: Resource, subresource: str) -> FieldSet:
        """The fields that this way of writing cannot change, and so does not own (``GetResetFields``)."""
        key = (resource, subresource)
        if key not in self._ignored:
            self._ignored[key] = self._reset(resource, subresource)
        return self._ignored[key]

    def _reset(self, resource: Resource, subresource: str) -> FieldSet:
        if "status" not in resource.subresources:
            return {}
        if subresource != "status":
            return {field("status"): LEAF}
        if resource.custom:
            return {field(name): LEAF for name in ("metadata", "spec")}
        node = self._node_of(resource)
        return {field(name): LEAF for name in (node.fields if node else ()) if name not in _SHARED}

    def _changes(self, old: Object, new: Object, resource: Resource, subresource: str) -> Difference:
        changes = compared(old, new, self.shape(resource))
        ignored = self.ignored(resource, subresource)
        return Difference(without(changes.changed, ignored), without(changes.removed, ignored)) if ignored else changes

    def _served(self, claims: owners.Claims, resource: Resource) -> owners.Claims:
        """Without those in versions that nobody serves any more."""
        if all(claim.version == resource.api_version for claim in claims.values()):
            return claims
        known = {one.api_version for one in self._scheme if one.kind == resource.kind}
        return owners.served(claims, known.__contains__)

    def _zero(self, resource: Resource) -> Object:
        """What an object has before anybody has written it; a custom resource has nothing."""
        zero: Object = {} if resource.custom else self.shape(resource).zero
        return zero

    def _blank(self, resource: Resource) -> Object:
        zero = self._zero(resource)
        said = {"kind": resource.kind, "apiVersion": resource.api_version}
        return {**zero, **said, "metadata": dict(zero.get("metadata") or {})}

    def _keep(self, obj: Object, claims: owners.Claims) -> None:
        if claims:
            obj["metadata"]["managedFields"] = owners.encoded(claims)


def _unmanaged(obj: Object) -> Object:
    """The object without its record."""
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
