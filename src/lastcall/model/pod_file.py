"""Reads pods from a file: the output of ``kubectl get pods -o json|yaml``, or manifests."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall.model.base import Facts
from lastcall.model.pods import Pod

_LISTS = ("List", "PodList")
_EXPECTED = "must be List, PodList or Pod"


class PodFile(Facts, frozen=True):
    """The pods in the file's order, and warnings about the rest of the file."""

    pods: tuple[Pod, ...]
    warnings: tuple[str, ...] = ()


def read_pods(data: bytes, source: str) -> PodFile:
    """The pods of a List, a PodList, a Pod, or several such documents; other kinds are ignored.

    A list item without a kind is a pod, as in the API's PodList, and lists may be nested. InvalidInput lists all
    violations at once, with the pod's place and name. A file without any list or pod is a violation too.
    """
    documents = decoding.parse_documents(data, source)
    reading = _PodReader()
    for number, document in enumerate(documents, 1):
        reading.read_document(document, f"document {number}" if len(documents) > 1 else "")
    if not documents:
        reading.wrong.append(f"document: empty: {_EXPECTED}")
    elif reading.others.total() == len(documents):
        reading.wrong += [f"kind: {decoding.quote_value(kind)}: {_EXPECTED}" for kind in reading.others]
    if reading.wrong:
        raise InvalidInput(source, reading.wrong)
    return PodFile(pods=tuple(reading.pods), warnings=tuple(reading.list_warnings(source)))


class _PodReader:
    """Collects the pods and violations."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.wrong: list[str] = []
        self.others: Counter[str] = Counter()
        self.found_in_list: Counter[str] = Counter()

    def read_document(self, value: Any, place: str) -> None:
        """Reads one document of the file."""
        if not isinstance(value, dict):
            self._add_violations(place or "document", f"{decoding.quote_value(value)}: {_EXPECTED}")
            return
        kind = value.get("kind")
        if kind in _LISTS:
            self._read_list(value, place)
        elif kind == "Pod":
            self._read_pod(value, place)
        elif isinstance(kind, str):
            self.others[kind] += 1
        else:
            self._add_violations(place, f"kind: {_shown_kind(kind)}: {_EXPECTED}")

    def _read_list(self, value: dict[str, Any], place: str) -> None:
        self._add_violations(place, *_api_version_violations(value))
        items = value.get("items", ...)
        if items is ... or not isinstance(items, list | None):
            self._add_violations(
                place, f"items: {'missing' if items is ... else decoding.quote_value(items)}: must be a list"
            )
            return
        for index, item in enumerate(items or ()):
            at = f"{place}{'.' if place.endswith(']') else ' '}items[{index}]".lstrip()
            kind = item.get("kind", "Pod") if isinstance(item, dict) else None
            if kind == "Pod":
                self._read_pod(item, at)
            elif kind in _LISTS:
                self._read_list(item, at)
            elif isinstance(kind, str):
                self.found_in_list[kind] += 1
            else:
                self._add_violations(at, f"{decoding.quote_value(item)}: must be a mapping of kind Pod")

    def _read_pod(self, value: dict[str, Any], place: str) -> None:
        name = _pod_name(value)
        pod, violations = decoding.convert_readable(value, Pod)
        violations += _api_version_violations(value)
        if pod and not violations and not pod.metadata.name:
            violations.append("metadata.name: missing: must be given")
        if pod and not violations:
            self.pods.append(pod)
        self._add_violations(f"{place} ({name})" if place and name else place or name, *violations)

    def _add_violations(self, place: str, *violations: str) -> None:
        self.wrong += [f"{place}: {violation}" if place else violation for violation in violations]

    def list_warnings(self, source: str) -> Iterator[str]:
        """Warnings about a file without violations."""
        others = self.others + self.found_in_list
        if others:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
            yield f"{source}: {kinds} passed over: only pods count"
        twice = sorted(key for key, count in Counter(pod.key for pod in self.pods).items() if count > 1)
        if twice:
            yield f"{source}: more than one pod of the same name: {', '.join(twice)}"


def _api_version_violations(value: dict[str, Any]) -> list[str]:
    version = value.get("apiVersion", "v1")
    return [] if version == "v1" else [f"apiVersion: {decoding.quote_value(version)}: must be v1"]


def _shown_kind(value: Any) -> str:
    return "missing" if value is None else decoding.quote_value(value)


def _pod_name(value: dict[str, Any]) -> str:
    """``namespace/name`` as far as it is readable."""
    metadata = value.get("metadata")
    names = [metadata.get(key) for key in ("namespace", "name")] if isinstance(metadata, dict) else []
    return "/".join(name for name in names if isinstance(name, str))
