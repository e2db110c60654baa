"""``metadata.managedFields``: tracks the manager of each field at every write; and server-side apply."""

from lastcall_lab.apiserver.patches import field_owners, server_side_apply
from lastcall_lab.apiserver.patches.field_differences import FieldDifference, compare_objects
from lastcall_lab.apiserver.patches.field_sets import LEAF, FieldSet, exclude_subtrees, field_key
from lastcall_lab.apiserver.patches.server_side_apply import ApplyResult
from lastcall_lab.apiserver.patches.shapes import OwnershipShape, shared_shape
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.schema import Schemas
from lastcall_lab.apiserver.values import object_meta
from lastcall_lab.apiserver.values.request import Object

_SHARED = ("kind", "apiVersion", "metadata", "status")


class ManagedFields:
    """Updates the managed fields with every write. ``schemas`` has the types of the resources.

    Like Kubernetes, it compares what the client sent, with defaults, before admission and before the kind restores
    fields that this operation may not change.
    """

    def __init__(self, schemas: Schemas, scheme: ResourceScheme) -> None:
        self._schemas = schemas
        self._scheme = scheme
        self._shapes: dict[ServedResource, OwnershipShape] = {}
        self._other_shapes: dict[tuple[str, str], OwnershipShape] = {}
        self._ignored: dict[tuple[ServedResource, str], FieldSet] = {}

    def record_create(self, obj: Object, manager: str, resource: ServedResource, wall: float) -> None:
        """All fields of a new object belong to the manager, except those that every object of the kind has."""
        claims = field_owners.initial_claims(obj, None, subresource=False)
        obj["metadata"].pop("managedFields", None)
        changes = self._changes(self._zero(resource), obj, resource, "")
        owner = field_owners.update_owner(manager, resource.api_version)
        self._keep(
            obj,
            field_owners.claim_changes(
                claims, changes, owner, version=resource.api_version, now=object_meta.timestamp(wall)
            ),
        )

    def record_posted(self, obj: Object, shape: OwnershipShape, manager: str, subresource: str, wall: float) -> None:
        """The same for an object that is never stored; ``shape`` is that of its kind."""
        obj["metadata"].pop("managedFields", None)
        owner = field_owners.update_owner(manager, obj["apiVersion"], subresource)
        changes = compare_objects(shape.zero, obj, shape)
        self._keep(
            obj,
            field_owners.claim_changes({}, changes, owner, version=obj["apiVersion"], now=object_meta.timestamp(wall)),
        )

    def record_update(
        self, new: Object, old: Object, manager: str, resource: ServedResource, subresource: str, wall: float
    ) -> None:
        """The fields that differ from ``old`` belong to the manager. Objects without a record stay without one."""
        claims = field_owners.initial_claims(new, old, subresource=bool(subresource))
        new["metadata"].pop("managedFields", None)
        if not claims:
            return
        version = resource.api_version
        changes = self._changes(_without_record(old), new, resource, subresource)
        owner = field_owners.update_owner(manager, version, subresource)
        claims = field_owners.claim_changes(
            self._served_claims(claims, resource), changes, owner, version=version, now=object_meta.timestamp(wall)
        )
        self._keep(new, claims)

    def apply_configuration(
        self,
        live: Object | None,
        config: Object,
        manager: str,
        resource: ServedResource,
        subresource: str,
        wall: float,
        *,
        force: bool,
    ) -> Object:
        """The object after the apply of a configuration, with its record; ``live`` is None if it does not exist.

        ``configuration_faults`` must find no fault in the configuration. ``ApplyConflicts`` if fields of other managers
        would change, unless ``force``.
        """
        shape, now = self.shape_of(resource), object_meta.timestamp(wall)
        ignored = self.reset_fields(resource, subresource)
        claims = self._served_claims(
            field_owners.decode_claims((live or config)["metadata"].get("managedFields") or ()), resource
        )
        before = _without_record(live) if live else self._blank(resource)
        if not claims:
            first = field_owners.update_owner(field_owners.BEFORE_FIRST_APPLY, resource.api_version, subresource)
            changes = self._changes(self._zero(resource), before, resource, subresource)
            claims = field_owners.claim_changes({}, changes, first, version=resource.api_version, now=now)
        owner = field_owners.apply_owner(manager, subresource)
        apply = (
            server_side_apply.apply_as_kubectl
            if manager == server_side_apply.KUBECTL
            else server_side_apply.apply_configuration
        )
        result: ApplyResult = apply(
            before, config, claims, owner, shape=shape, version=resource.api_version, ignored=ignored, force=force
        )
        claims = result.claims
        if owner in claims and not result.same:
            claims = {**claims, owner: claims[owner]._replace(time=now)}
        new = {**result.obj, "metadata": dict(result.obj["metadata"])}
        self._keep(new, claims)
        return new

    def undo_time_changes(self, new: Object, old: Object) -> None:
        """Reverts a write that changes only the times of the record."""
        metadata, before = new["metadata"], old["metadata"]
        said, was = metadata.get("managedFields"), before.get("managedFields")
        if said == was or not said or not was or _without_record(new) != _without_record(old):
            return
        if field_owners.without_times(said) == field_owners.without_times(was):
            metadata["managedFields"] = was

    def shape_of(self, resource: ServedResource) -> OwnershipShape:
        """The ownership shape of a resource's objects."""
        shape = self._shapes.get(resource)
        if shape is None:
            node = self._schemas.of(resource)
            shared = node is not None and not resource.custom
            shape = self._shapes[resource] = shared_shape(node) if shared else OwnershipShape(node)
        return shape

    def shape_of_object(self, obj: Object, resource: ServedResource) -> OwnershipShape:
        """How ownership sees an object that is sent to a resource; its kind may differ (a Binding sent to pods)."""
        kind = obj.get("apiVersion", ""), obj.get("kind", "")
        if resource.custom or kind == (resource.api_version, resource.kind):
            return self.shape_of(resource)
        if kind not in self._other_shapes:
            self._other_shapes[kind] = OwnershipShape(self._schemas.node_of_object(obj, resource))
        return self._other_shapes[kind]

    def reset_fields(self, resource: ServedResource, subresource: str) -> FieldSet:
        """The fields that this operation cannot change and so never owns (``GetResetFields``)."""
        key = (resource, subresource)
        if key not in self._ignored:
            self._ignored[key] = self._own_reset_fields(resource, subresource)
        return self._ignored[key]

    def _own_reset_fields(self, resource: ServedResource, subresource: str) -> FieldSet:
        if "status" not in resource.subresources:
            return {}
        if subresource != "status":
            return {field_key("status"): LEAF}
        if resource.custom:
            return {field_key(name): LEAF for name in ("metadata", "spec")}
        node = self._schemas.of(resource)
        return {field_key(name): LEAF for name in (node.fields if node else ()) if name not in _SHARED}

    def _changes(self, old: Object, new: Object, resource: ServedResource, subresource: str) -> FieldDifference:
        changes = compare_objects(old, new, self.shape_of(resource))
        ignored = self.reset_fields(resource, subresource)
        return (
            FieldDifference(exclude_subtrees(changes.changed, ignored), exclude_subtrees(changes.removed, ignored))
            if ignored
            else changes
        )

    def _served_claims(self, claims: field_owners.Claims, resource: ServedResource) -> field_owners.Claims:
        """The claims without those in versions that are no longer served."""
        if all(claim.version == resource.api_version for claim in claims.values()):
            return claims
        known = {one.api_version for one in self._scheme if one.kind == resource.kind}
        return field_owners.drop_unserved(claims, known.__contains__)

    def _zero(self, resource: ServedResource) -> Object:
        """An object before any write; empty for a custom resource."""
        zero: Object = {} if resource.custom else self.shape_of(resource).zero
        return zero

    def _blank(self, resource: ServedResource) -> Object:
        zero = self._zero(resource)
        said = {"kind": resource.kind, "apiVersion": resource.api_version}
        return {**zero, **said, "metadata": dict(zero.get("metadata") or {})}

    def _keep(self, obj: Object, claims: field_owners.Claims) -> None:
        if claims:
            obj["metadata"]["managedFields"] = field_owners.encode_claims(claims)


def _without_record(obj: Object) -> Object:
    """The object without its record."""
    metadata = obj["metadata"]
    if "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
