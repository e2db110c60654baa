"""The state of a cluster from a file: what ``kubectl get nodes,pods,... -A -o json|yaml`` gives."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from lastcall.errors import InvalidInput
from lastcall.model import decode
from lastcall.model.base import Facts
from lastcall.model.snapshot import Lease, Node, PersistentVolume, Pod, Snapshot, VolumeAttachment


class _Kind(NamedTuple):
    version: str
    type: Any
    field: str
    namespaced: bool = False

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]


_KINDS = {
    "Node": _Kind("v1", Node, "nodes"),
    "Pod": _Kind("v1", Pod, "pods", namespaced=True),
    "VolumeAttachment": _Kind("storage.k8s.io/v1", VolumeAttachment, "attachments"),
    "Lease": _Kind("coordination.k8s.io/v1", Lease, "leases", namespaced=True),
    "PersistentVolume": _Kind("v1", PersistentVolume, "volumes"),
}
_EXPECTED = f"must be List, or {', '.join(_KINDS)} or a list of one of these"


class StateFile(Facts, frozen=True):
    """The objects in the file's order, and what a person should know about the rest of it."""

    snapshot: Snapshot
    warnings: tuple[str, ...] = ()


def read_state(data: bytes, source: str) -> StateFile:
    """The objects of a List, a list of one kind, or several documents of these; other kinds are passed over.

    An item of a list of one kind (NodeList) need not say its kind; a list may stand in a List. InvalidInput lists everything that is wrong about any
    object at once, after its place, kind and name; an object that stands twice is wrong too, and so is a file in which
    nothing is of these kinds but its lists.
    """
    documents = decode.documents(data, source)
    reading = _Reading()
    for number, document in enumerate(documents, 1):
        reading.document(document, f"document {number}" if len(documents) > 1 else "")
    if not documents:
        reading.wrong.append(f"document: empty: {_EXPECTED}")
    elif reading.strangers == len(documents):
        reading.wrong += [f"kind: {decode.shown(kind)}: {_EXPECTED}" for kind in reading.others]
    if reading.wrong:
        raise InvalidInput(source, reading.wrong)
    found = {kind.field: tuple(reading.found[name]) for name, kind in _KINDS.items()}
    return StateFile(snapshot=Snapshot(**found), warnings=tuple(reading.warnings(source)))


class _Reading:
    """What was found so far."""

    def __init__(self) -> None:
        self.found: dict[str, list[Any]] = {name: [] for name in _KINDS}
        self.wrong: list[str] = []
        self.others: Counter[str] = Counter()
        self.strangers = 0
        """Documents of other kinds."""
        self._seen: set[tuple[str, str, str]] = set()

    def document(self, value: Any, place: str) -> None:
        """One document of the file."""
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            at = f"{place}: " if place else ""
            self.wrong.append(f"{at}kind: {'missing' if kind is None else decode.shown(kind)}: {_EXPECTED}")
        elif _is_list(kind):
            self._list(value, place, kind.removesuffix("List"))
        else:
            self.strangers += not self._object(value, kind, place)

    def _list(self, value: dict[str, Any], place: str, kind: str) -> None:
        items = value.get("items", ...)
        if items is ... or not isinstance(items, list | None):
            at = _in(place, "items")
            self.wrong.append(f"{at}: {'missing' if items is ... else decode.shown(items)}: must be a list")
            return
        for index, item in enumerate(items or ()):
            self._item(item, _in(place, f"items[{index}]"), kind)

    def _item(self, item: Any, place: str, default: str) -> None:
        """``default`` is its kind if it does not say one."""
        kind = item.get("kind", default or None) if isinstance(item, dict) else None
        if not isinstance(kind, str):
            self.wrong.append(f"{place}: {decode.shown(item)}: must be a mapping with a kind")
        elif _is_list(kind):
            self._list(item, place, kind.removesuffix("List"))
        else:
            self._object(item, kind, place)

    def _object(self, value: dict[str, Any], name: str, place: str) -> bool:
        """Whether it is of a kind that is read."""
        kind = _KINDS.get(name)
        version = value.get("apiVersion", kind.version if kind else "")
        if kind is None or (isinstance(version, str) and version.rpartition("/")[0] != kind.group):
            self.others[name] += 1
            return False
        found, violations = decode.collect(value, kind.type)
        if version != kind.version:
            violations.append(f"apiVersion: {decode.shown(version)}: must be {kind.version}")
        if found and not violations:
            violations += self._again(name, kind, found)
            self.found[name].append(found)
        about = f"{place} ({name}{_name(value, kind)})" if place else f"{name}{_name(value, kind)}"
        self.wrong += [f"{about}: {violation}" for violation in violations]
        return True

    def _again(self, name: str, kind: _Kind, found: Any) -> Iterator[str]:
        metadata = found.metadata
        key = (name, metadata.namespace if kind.namespaced else "", metadata.name)
        if key in self._seen:
            yield f"metadata.name: {decode.shown(metadata.name)}: must not stand twice"
        self._seen.add(key)

    def warnings(self, source: str) -> Iterator[str]:
        """About a file in which nothing is wrong."""
        if self.others:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.others.items()))
            yield f"{source}: passed over: {kinds}"
        if self.found["Pod"] and not self.found["Node"]:
            yield f"{source}: no Node: all nodes of the pods count as missing"
        volumes = {volume.metadata.name for volume in self.found["PersistentVolume"]}
        unknown = [
            attachment.metadata.name
            for attachment in self.found["VolumeAttachment"]
            if attachment.spec.source.persistent_volume_name not in volumes
        ]
        if unknown:
            yield f"{source}: no PersistentVolume for: {', '.join(sorted(unknown))}"


def _is_list(kind: str) -> bool:
    """Of anything, or of a kind that is read."""
    return kind == "List" or (kind.endswith("List") and kind.removesuffix("List") in _KINDS)


def _in(place: str, field: str) -> str:
    """A field of what stands at a place: of a document, or of an item."""
    return f"{place}{'.' if place.endswith(']') else ' '}{field}".lstrip()


def _name(value: dict[str, Any], kind: _Kind) -> str:
    """`` namespace/name`` as far as it can be read."""
    metadata = value.get("metadata")
    fields = ("namespace", "name") if kind.namespaced else ("name",)
    parts = [metadata.get(field) for field in fields] if isinstance(metadata, dict) else []
    text = "/".join(part for part in parts if isinstance(part, str) and part)
    return f" {text}" if text else ""
