"""Reads objects of some kinds from a file: the output of ``kubectl get nodes,pods,... -A -o json|yaml``."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lastcall.errors import InvalidInput
from lastcall.model import decoding


class FileKind(NamedTuple):
    """How a kind is read: its apiVersion, the struct, and whether it is namespaced.

    ``any_version``: objects of other versions of its group are read too, because the fields are the same in them.
    ``older`` has for each older version what converts an object of it to the kind's version.
    """

    version: str
    type: Any
    namespaced: bool = False
    any_version: bool = False
    older: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return self.version.rpartition("/")[0]


class FoundObjects(NamedTuple):
    """The objects by kind, in the file's order; ``others`` counts the objects of other kinds.

    ``rest`` has all objects as the type that was asked for.
    """

    objects: Mapping[str, list[Any]]
    others: Counter[str]
    rest: Sequence[Any] = ()


def read_list(data: bytes, source: str, kinds: Mapping[str, FileKind], *, rest: Any = None) -> FoundObjects:
    """The objects of a List, a list of one kind, or several such documents.

    With ``rest`` all objects, of other kinds and in lists of these too, are read as that type as well, as far as they can
    be; without it objects of other kinds are ignored.

    An item of a list of one kind (NodeList) need not give its kind, and lists may be nested. The default namespace is
    ``default``. InvalidInput lists all violations at once, with the object's place, kind and name. A duplicate object
    is a violation, and so is a file without any list or object of these kinds.
    """
    documents = decoding.parse_documents(data, source)
    reading = _ListReader(kinds, rest)
    for number, document in enumerate(documents, 1):
        reading.read_document(document, f"document {number}" if len(documents) > 1 else "")
    if not documents:
        reading.wrong.append(f"document: empty: {reading.expected}")
    elif reading.strangers == len(documents) and not reading.rest:
        reading.wrong += [f"kind: {decoding.quote_value(kind)}: {reading.expected}" for kind in reading.others]
    if reading.wrong:
        raise InvalidInput(source, reading.wrong)
    return FoundObjects(reading.found, reading.others, reading.rest)


class _ListReader:
    """Collects the objects and violations."""

    def __init__(self, kinds: Mapping[str, FileKind], rest: Any) -> None:
        self.expected = f"must be List, or {', '.join(kinds)} or a list of one of these"
        self.found: dict[str, list[Any]] = {name: [] for name in kinds}
        self.wrong: list[str] = []
        self.others: Counter[str] = Counter()
        self.strangers = 0
        """Documents of other kinds."""
        self.rest: list[Any] = []
        self._rest_type = rest
        self._kinds = kinds
        self._seen: set[tuple[str, ...]] = set()

    def read_document(self, value: Any, place: str) -> None:
        """Reads one document of the file."""
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            at = f"{place}: " if place else ""
            self.wrong.append(f"{at}kind: {'missing' if kind is None else decoding.quote_value(kind)}: {self.expected}")
        elif self._is_list(kind, value):
            self._read_list(value, place, kind.removesuffix("List"))
        else:
            self.strangers += not self._read_object(value, kind, place)

    def _read_list(self, value: dict[str, Any], place: str, kind: str) -> None:
        items = value.get("items", ...)
        if items is ... or not isinstance(items, list | None):
            at = _field_place(place, "items")
            self.wrong.append(f"{at}: {'missing' if items is ... else decoding.quote_value(items)}: must be a list")
            return
        for index, item in enumerate(items or ()):
            self._read_item(item, _field_place(place, f"items[{index}]"), kind)

    def _read_item(self, item: Any, place: str, default: str) -> None:
        """Reads one item; ``default`` is its kind if it gives none."""
        kind = item.get("kind", default or None) if isinstance(item, dict) else None
        if not isinstance(kind, str):
            self.wrong.append(f"{place}: {decoding.quote_value(item)}: must be a mapping with a kind")
        elif self._is_list(kind, item):
            self._read_list(item, place, kind.removesuffix("List"))
        else:
            self._read_object(item, kind, place)

    def _read_object(self, value: dict[str, Any], name: str, place: str) -> bool:
        """Reads an object; False if its kind is ignored."""
        self._keep_rest({"kind": name, **value})
        kind = self._kinds.get(name)
        version = value.get("apiVersion", kind.version if kind else "")
        if kind is None or (isinstance(version, str) and version.rpartition("/")[0] != kind.group):
            self.others[name] += 1
            return False
        placed = _with_namespace(value) if kind.namespaced else value
        convert = kind.older.get(version) if isinstance(version, str) else None
        found, violations = decoding.convert_readable(convert(placed) if convert else placed, kind.type)
        if version != kind.version and not kind.any_version and not convert:
            violations.append(f"apiVersion: {decoding.quote_value(version)}: must be {kind.version}")
        if found is not None and not violations:
            violations += self._find_duplicate(name, *_object_key(placed, kind))
            self.found[name].append(found)
        called = f"{name} {'/'.join(_object_key(value, kind))}".rstrip()
        about = f"{place} ({called})" if place else called
        self.wrong += [f"{about}: {violation}" for violation in violations]
        return True

    def _keep_rest(self, value: dict[str, Any]) -> None:
        """Reads an object of any kind as far as it can be."""
        if self._rest_type and (other := decoding.convert_readable(value, self._rest_type)[0]) is not None:
            self.rest.append(other)

    def _find_duplicate(self, *key: str) -> Iterator[str]:
        if key in self._seen:
            yield f"metadata.name: {decoding.quote_value(key[-1])}: must be unique"
        self._seen.add(key)

    def _is_list(self, kind: str, value: Mapping[str, Any]) -> bool:
        """Whether it is a List, or a list of one kind; a kind that is not known may end with List too."""
        if kind == "List" or not kind.endswith("List"):
            return kind == "List"
        return kind.removesuffix("List") in self._kinds or bool(
            self._rest_type and isinstance(value.get("items"), list)
        )


def _with_namespace(value: dict[str, Any]) -> dict[str, Any]:
    """The object with the default namespace if it gives none."""
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("namespace") is not None:
        return value
    return value | {"metadata": metadata | {"namespace": "default"}}


def _field_place(place: str, field: str) -> str:
    """The path of a field, given the place of its document or item."""
    return f"{place}{'.' if place.endswith(']') else ' '}{field}".lstrip()


def _object_key(value: dict[str, Any], kind: FileKind) -> list[str]:
    """Namespace and name, as far as they are readable."""
    metadata = value.get("metadata")
    fields = ("namespace", "name") if kind.namespaced else ("name",)
    parts = [metadata.get(field) for field in fields] if isinstance(metadata, dict) else []
    return [part for part in parts if isinstance(part, str) and part]
