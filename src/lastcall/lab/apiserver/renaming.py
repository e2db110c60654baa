"""Objects that are shown otherwise than they are stored: fields of other names, annotations that are none (pure)."""

import msgspec

from lastcall.lab.apiserver.request import Object
from lastcall.lab.apiserver.scheme import Resource
from lastcall.lab.apiserver.store import Stored


def served(stored: Stored, resource: Resource) -> Object:
    """A stored object as the resource shows it, with kind and apiVersion."""
    return {"kind": resource.kind, "apiVersion": resource.api_version, **as_in(resource, stored.object())}


def as_in(resource: Resource, obj: Object) -> Object:
    """An object with the names of the resource, from those that are stored; texts that are empty are left out."""
    if not resource.renamed:
        return obj
    back = {old: new for new, old in resource.renamed.items()}
    return {back.get(name, name): value for name, value in obj.items() if value != ""}


def data(stored: Stored, resource: Resource) -> bytes:
    """The same as JSON, without kind and apiVersion; most objects are stored as just that."""
    if not resource.renamed:
        return stored.data
    obj = served(stored, resource)
    return msgspec.json.encode({name: value for name, value in obj.items() if name not in ("kind", "apiVersion")})


def kept(obj: Object, resource: Resource) -> Object:
    """An object of the resource with the names that are stored."""
    if not resource.renamed:
        return obj
    return {resource.renamed.get(name, name): value for name, value in obj.items()}


def shown(metadata: Object, resource: Resource) -> Object:
    """Metadata without the annotations that are none within the server."""
    hidden = resource.behaviour.hidden_annotations
    if not hidden or not metadata.get("annotations"):
        return metadata
    left = {name: value for name, value in metadata["annotations"].items() if name not in hidden}
    rest = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**rest, "annotations": left} if left else rest
