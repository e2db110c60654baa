"""Objects that expressions construct, such as ``Object.spec{replicas: 3}``, and composed variables (pure).

The library parses such expressions but cannot evaluate them, so they are rewritten as function calls. The functions
return a map with the type's name under ``@type``.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from lastcall_lab.apiserver.cel import evaluator

TYPE = "@type"
MAKE, COMPOSED = "makeObject", "composedVariable"

_WORD = re.compile(
    r"""[rRbB]{0,2}(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<known>\bhas\(\s*variables\s*\.\s*\w+\s*\))
    |\bhas\((?P<has>\s*(?P<holder>(?!variables\b)\w+(?:\s*\.\s*\w+)*)\s*\.\s*\w+\s*)\)
    |(?P<variable>(?<![\w.])variables\s*\.\s*(?P<name>[A-Za-z_]\w*))
    |(?P<made>(?<![\w.])(?:Object(?:\s*\.\s*\w+)*|JSONPatch)\s*\{)
    |[A-Za-z_]\w*|`[^`]*`|\s+|.""",
    re.DOTALL | re.VERBOSE,
)


class MutationFault(Exception):
    """A mutation's result cannot be applied; the text is the reason in Kubernetes' words."""


def rewrite_objects(expression: str) -> str:
    """The expression with function calls in place of constructs that the library does not evaluate."""
    if any(word in expression for word in ("variables", "Object", "JSONPatch", "has(")):
        return "".join(_words(expression))
    return expression


def _words(expression: str) -> Iterator[str]:
    open_: list[str] = []
    key = False
    for found in _WORD.finditer(expression):
        word = found[0]
        if found["made"]:
            type_ = re.sub(r"\s", "", word[:-1])
            open_.append("made")
            key = True
            yield f'{MAKE}("{type_}", {{'
        elif found["known"]:
            yield "true"
        elif found["has"]:  # in cel-go null has no fields, in the library it is an error to ask
            yield f"({found['holder']} != null && has({found['has']}))"
        elif found["variable"]:
            yield f'{COMPOSED}("{found["name"]}")'
        elif word in "([{":
            open_.append(word)
            key = False
            yield word
        elif word in ")]}":
            made = bool(open_) and open_.pop() == "made"
            key = False
            yield "})" if made else word
        elif key and word == "?":
            continue  # of a field that may be missing: an optional value says so itself
        elif key and word.strip() and word != ":":
            key = False
            yield '"' + word.strip("`") + '"'
        else:
            key = key or (word == "," and bool(open_) and open_[-1] == "made")
            yield word


def make_object(type_: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The value of such an expression, without optional fields that have no value."""
    return {TYPE: type_, **dict(evaluator.present_fields(fields))}


def type_mismatches(value: Any, path: str = "") -> Iterator[str]:
    """Nested types that differ from those of their fields, below ``path`` or its own type."""
    if isinstance(value, dict):
        type_ = value.get(TYPE)
        path = path or type_ or ""
        if type_ is not None and type_ != path:
            yield f'unexpected type name "{type_}", expected "{path}", which matches field name path from root Object type'
        for name, inner in value.items():
            if name != TYPE:
                yield from type_mismatches(inner, f"{path}.{name}" if type_ is not None else path)
    elif isinstance(value, list):
        for inner in value:
            yield from type_mismatches(inner, path)


def to_json(value: Any) -> Any:
    """Converts the value to JSON."""
    if isinstance(value, dict):
        return {name: to_json(inner) for name, inner in value.items() if name != TYPE}
    return [to_json(inner) for inner in value] if isinstance(value, list) else value


def patch_operations(patches: Sequence[Any]) -> list[dict[str, Any]]:
    """The JSON patch operations that an expression returned. MutationFault if one is invalid."""
    found = []
    for one in patches:
        if not isinstance(one, dict) or one.get(TYPE) != "JSONPatch":
            raise MutationFault("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        if (
            wrong := [*type_mismatches(one["value"])]
            if isinstance(one.get("value"), dict) and TYPE in one["value"]
            else []
        ):
            raise MutationFault(f"type mismatch: {chr(10).join(wrong)}")
        found.append(to_json(one))
    return found
