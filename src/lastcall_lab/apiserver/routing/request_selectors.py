"""Label and field selectors of a request, ready to be asked (``k8s.io/apimachinery/pkg/labels`` and ``field_selector``), pure."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from lastcall.model import label_query
from lastcall.model.label_selector import Matcher, build_matcher, select_everything
from lastcall_lab.apiserver.resources.scheme import ServedResource
from lastcall_lab.apiserver.values.api_errors import bad_request_error

Selector = Matcher
"""Whether labels, or fields, are selected."""

_ALWAYS = ("metadata.name", "metadata.namespace")


class FieldTerm(NamedTuple):
    """One requirement of a field selector."""

    field: str
    equal: bool
    value: str

    def matches(self, found: Mapping[str, str]) -> bool:
        """Matches a value; a missing field is empty."""
        return (found.get(self.field, "") == self.value) is self.equal


def parse_label_selector(text: str) -> Selector:
    """Parses ``app=x,tier in (a,b),!old``. ApiError if it is invalid."""
    try:
        return build_matcher(label_query.parse_label_query(text))
    except ValueError as error:
        raise bad_request_error(str(error)) from None


def parse_field_terms(text: str) -> list[FieldTerm]:
    r"""Parses ``spec.nodeName=n1,status.phase!=Failed``; ``\`` escapes ``\``, ``,`` and ``=`` in values.

    ApiError if it is invalid.
    """
    found = [_term(part, text) for part in sorted(_parts(text)) if part]
    return [term for term in found if term.field or term.value]  # an empty selector matches everything


def field_selector(wanted: Collection[FieldTerm], resource: ServedResource, supported: Collection[str]) -> Selector:
    """The selector from its requirements. ApiError for unsupported fields.

    ``supported`` are the fields of the kind besides name and namespace.
    """
    for term in wanted:
        if not _is_known_field(term.field, resource, supported):
            raise bad_request_error(_unsupported_text(term.field, resource, supported))
    if not wanted:
        return select_everything
    return lambda found: all(term.matches(found) for term in wanted)


def _is_known_field(field: str, resource: ServedResource, supported: Collection[str]) -> bool:
    if field == "metadata.namespace" and not resource.namespaced and (supported or resource.custom):
        return False
    return field in _ALWAYS or field in supported


def _unsupported_text(field: str, resource: ServedResource, supported: Collection[str]) -> str:
    """Kinds with their own fields have their own message; all others list the supported fields."""
    if resource.kind == "Job":
        return f'field label "{field}" not supported for batchv1.Job'
    if supported or resource.custom:
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


def _parts(text: str) -> Iterator[str]:
    """Splits at commas that are not escaped."""
    start, escaped = 0, False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _term(part: str, text: str) -> FieldTerm:
    at = next((index for index, character in enumerate(part) if character == "=" or part.startswith("!=", index)), -1)
    if at < 0:
        raise bad_request_error(f"invalid selector: '{text}'; can't understand '{part}'")
    operator = next(one for one in ("!=", "==", "=") if part.startswith(one, at))
    return FieldTerm(part[:at], operator != "!=", _unescape(part[at + len(operator) :]))


def _unescape(value: str) -> str:
    result, rest = "", iter(value)
    for character in rest:
        if character in ",=":
            # Go's %v of a rune is its number.
            raise bad_request_error(f"invalid field selector: unescaped character in value: {ord(character)}")
        if character == "\\":
            character = next(rest, "")  # noqa: PLW2901  (the one that is escaped stands for itself)
            if character not in ("\\", ",", "="):
                raise bad_request_error(f"invalid field selector: invalid escape sequence: \\{character}")
        result += character
    return result
