"""What the configuration files of lastcall have in common: one document with a kind, and no unknown fields (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import msgspec

from lastcall.errors import InvalidInput
from lastcall.model import decoding


def read_document(data: bytes, source: str, versions: Mapping[str, str]) -> dict[str, Any]:
    """The one document of a file; ``versions`` has the apiVersion of each kind that it may be.

    InvalidInput for another number of documents, another kind or another apiVersion.
    """
    documents = decoding.parse_documents(data, source)
    expected = f"expected one {' or '.join(versions)}"
    if len(documents) != 1:
        found = f"{len(documents)} documents" if documents else "empty"
        raise InvalidInput(source, [f"document: {found}: {expected}"])
    document = documents[0]
    if not isinstance(document, dict):
        raise InvalidInput(source, [f"document: {decoding.quote_value(document)}: {expected}"])
    _check_kind(document, source, versions)
    return document


def field_names(struct: type[msgspec.Struct]) -> Sequence[str]:
    """The fields as a file writes them."""
    return struct.__struct_encode_fields__


def list_unknown_fields(value: Any, known: Sequence[str], at: str = "") -> Iterator[str]:
    """A violation for each field of a mapping that is not known; ``at`` is what precedes the field's name."""
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            close = get_close_matches(str(name), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            yield f"{at}{name}: {decoding.quote_value(value[name])}: unknown field, {hint}"


def _check_kind(document: Mapping[str, Any], source: str, versions: Mapping[str, str]) -> None:
    kind, version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or kind not in versions:
        raise InvalidInput(source, [f"kind: {_describe_value(kind)}: must be {' or '.join(versions)}"])
    if version != versions[kind]:
        raise InvalidInput(
            source, [f"apiVersion: {_describe_value(version)}: must be {versions[kind]} for kind {kind}"]
        )


def _describe_value(value: object) -> str:
    return "missing" if value is None else decoding.quote_value(value)
