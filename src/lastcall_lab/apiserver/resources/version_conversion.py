"""Converts between served and stored objects: renamed fields, and hidden annotations (pure)."""

import msgspec

from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.storage.store import StoredObject
from lastcall_lab.apiserver.values.request import Object


def to_served(stored: StoredObject, resource: ServedResource) -> Object:
    """A stored object as the resource serves it, with kind and apiVersion."""
    return {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        **with_resource_names(resource, stored.to_object()),
    }


def with_resource_names(resource: ServedResource, obj: Object) -> Object:
    """An object with the resource's field names instead of the stored ones; omits empty texts."""
    if not resource.renamed:
        return obj
    back = {old: new for new, old in resource.renamed.items()}
    return {back.get(name, name): value for name, value in obj.items() if value != ""}


def to_served_json(stored: StoredObject, resource: ServedResource) -> bytes:
    """The same as JSON without kind and apiVersion; most objects are stored in this form."""
    if not resource.renamed:
        return stored.data
    obj = to_served(stored, resource)
    return msgspec.json.encode({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})


def to_stored(obj: Object, resource: ServedResource) -> Object:
    """An object of the resource with the stored field names."""
    if not resource.renamed:
        return obj
    return {resource.renamed.get(name, name): value for name, value in obj.items()}


def visible_metadata(metadata: Object, resource: ServedResource) -> Object:
    """Metadata without the annotations that only the server uses."""
    hidden = resource.behaviour.hidden_annotations
    if not hidden or not metadata.get("annotations"):
        return metadata
    left = {name: value for name, value in metadata["annotations"].items() if name not in hidden}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**rest, "annotations": left} if left else rest
