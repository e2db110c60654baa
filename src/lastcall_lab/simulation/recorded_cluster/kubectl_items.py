"""The objects in a file of kubectl's, typed and complete, or every reason why they are none (pure)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall_lab.apiserver.catalog.built_in_resources import built_in_resources
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.schema.decoder import Decoder, Undecodable
from lastcall_lab.apiserver.schema.types import shared_table
from lastcall_lab.apiserver.values.request import Object

KINDS: Mapping[str, ServedResource] = {
    one.kind: one
    for one in built_in_resources()
    if one.kind
    in (
        "Namespace",
        "Node",
        "Pod",
        "Service",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Deployment",
        "ReplicaSet",
        "StatefulSet",
        "DaemonSet",
        "Job",
        "PodDisruptionBudget",
        "PriorityClass",
        "EndpointSlice",
        "StorageClass",
        "VolumeAttachment",
    )
}
"""The kinds that are simulated. Others are passed over."""

TEMPLATES = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
"""The kinds that make pods."""

_MOST = 50
_EXPECTED = "must be a List, as `kubectl get -o yaml` gives it, or an object"


class KubectlItems(NamedTuple):
    """Those of the kinds that are simulated, in the file's order; ``others`` counts those of other kinds."""

    objects: list[Object]
    others: Counter[str]


def read_items(data: bytes, source: str) -> KubectlItems:
    """From YAML or JSON, one document or several. InvalidInput tells of every item that is wrong: which, field and rule."""
    reading = _ItemReader()
    found = decoding.parse_documents(data, source)
    for number, document in enumerate(found, 1):
        reading.read_document(document, f"document {number} " if len(found) > 1 else "")
    if not found:
        reading.wrong.append(f"document: empty: {_EXPECTED}")
    if not reading.wrong and not any(one["kind"] == "Node" for one in reading.objects):
        reading.wrong.append("items: no Node: there must be at least one, or nothing can run")
    if reading.wrong:
        more = len(reading.wrong) - _MOST
        raise InvalidInput(source, [*reading.wrong[:_MOST], *([f"and {more} more"] if more > 0 else [])])
    return KubectlItems(reading.objects, reading.others)


class _ItemReader:
    """What was found so far."""

    def __init__(self) -> None:
        self.objects: list[Object] = []
        self.others: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._types = shared_table()
        self._seen: dict[tuple[str, str, str], str] = {}

    def read_document(self, value: Any, place: str) -> None:
        """A list, or an object that stands alone."""
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            self.wrong.append(f"{place or 'document'}: {decoding.quote_value(value)}: {_EXPECTED}".replace(" :", ":"))
        elif not kind.endswith("List"):
            self._read_item(value, place.strip() or "document", "")
        elif not isinstance(items := value.get("items"), list | None) or "items" not in value:
            said = decoding.quote_value(items) if "items" in value else "missing"
            self.wrong.append(f"{place}items: {said}: must be a list")
        else:
            for index, one in enumerate(items or ()):
                self._read_item(one, f"{place}items[{index}]", kind.removesuffix("List"))

    def _read_item(self, value: Any, place: str, default: str) -> None:
        """``default`` is its kind if it does not say one, as in a PodList of the API."""
        kind = value.get("kind", default) if isinstance(value, dict) else None
        if not isinstance(kind, str) or not kind:
            self.wrong.append(
                f"{place}: {decoding.quote_value(value)}: must be an object with apiVersion, kind and metadata"
            )
            return
        if kind.endswith("List"):
            self.read_document(value, f"{place}.")
            return
        if kind not in KINDS:
            self.others[kind] += 1
            return
        violations = [*_missing_fields(value, KINDS[kind])] or [*self._type_violations(value, KINDS[kind])]
        self.wrong += [f"{place} ({_item_name(kind, value)}): {one}" for one in violations]

    def _type_violations(self, value: Object, resource: ServedResource) -> Iterator[str]:
        """Adds the object, or says what is wrong."""
        node = self._types.find(resource.group, resource.version, resource.kind)
        assert node is not None, "all kinds that are built in are known"
        assert node.struct is not None
        try:
            obj = Decoder().decode(value, node.struct)
        except Undecodable as error:
            yield str(error)
            return
        metadata = obj["metadata"]
        if not resource.namespaced:
            metadata.pop("namespace", None)
        elif not metadata.get("namespace"):
            metadata["namespace"] = "default"
        key = (resource.kind, metadata.get("namespace", ""), metadata["name"])
        if key in self._seen:
            yield "is there twice: each object must be there once"
        self._seen[key] = ""
        obj |= {"apiVersion": resource.api_version, "kind": resource.kind}
        self.objects.append(obj)


def _missing_fields(value: Object, resource: ServedResource) -> Iterator[str]:
    """What is missing for it to be used at all."""
    version = value.get("apiVersion", resource.api_version)
    if version != resource.api_version:
        yield f"apiVersion: {decoding.quote_value(version)}: must be {resource.api_version}"
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str) or not metadata["name"]:
        yield "metadata.name: missing: must be given"
    path = "spec.template.spec" if resource.kind in TEMPLATES else "spec" if resource.kind == "Pod" else ""
    if path and not _value_at(value, f"{path}.containers"):
        yield f"{path}.containers: missing: there must be one at least"
    if path and resource.kind not in ("Pod", "Job") and not _value_at(value, "spec.selector"):
        yield "spec.selector: missing: must be given"


def _value_at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _item_name(kind: str, value: Object) -> str:
    metadata = value.get("metadata")
    parts = [metadata.get(part) for part in ("namespace", "name")] if isinstance(metadata, dict) else []
    return f"{kind} {'/'.join(part for part in parts if isinstance(part, str))}".strip()
