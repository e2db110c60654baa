"""YAML as Kubernetes parses it, and duplicate fields in the words of Go's library."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from lastcall.model.yaml_text import MergeKeys
from lastcall_lab.apiserver.encoding import yaml_limits

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_TAGS = {
    "bool": "|".join((*_TRUE, *_FALSE)),
    "int": r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)",
    "float": r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "null": r"~|null|Null|NULL|",
    "merge": "<<",
}
"""Types of plain scalars in matching order (``go.yaml.in/yaml/v2/resolve.go``); others, even times, are text."""

_FIRST = {
    "bool": "yYnNtTfFoO",
    "int": "-+0123456789",
    "float": "-+.0123456789",
    "null": ["~", "n", "N", ""],
    "merge": "<",
}
"""The first characters of such scalars. Without them PyYAML would try all patterns on each scalar."""


class StrictLoader(MergeKeys, yaml.CSafeLoader):
    """YAML 1.1 as in Go's library: y is true, 1:30 is text, 0o7 and 1e3 are numbers."""

    yaml_implicit_resolvers: dict[str | None, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (as in PyYAML)

    def integer(self, node: yaml.ScalarNode) -> int:
        """Parses an integer by its prefix; a leading zero means octal."""
        text = self.construct_scalar(node).replace("_", "")
        digits = text.lstrip("+-")
        octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
        return int(text, 8 if octal else 0)

    def boolean(self, node: yaml.ScalarNode) -> bool:
        """One of the eleven words for true."""
        return self.construct_scalar(node) in _TRUE

    def binary(self, node: yaml.ScalarNode) -> str:
        """Decodes base64 to text."""
        return self.construct_yaml_binary(node).decode(errors="replace")


for _name, _pattern in _TAGS.items():
    StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), list(_FIRST[_name])
    )
StrictLoader.add_constructor("tag:yaml.org,2002:int", StrictLoader.integer)
StrictLoader.add_constructor("tag:yaml.org,2002:bool", StrictLoader.boolean)
StrictLoader.add_constructor("tag:yaml.org,2002:binary", StrictLoader.binary)


class YamlDocument(NamedTuple):
    """``repeated`` is one complaint about all duplicate fields, or empty."""

    value: Any
    repeated: Sequence[str] = ()


def first_document(data: bytes) -> YamlDocument:
    """The first document, because Kubernetes ignores others; None if there is none. yaml.YAMLError if invalid."""
    yaml_limits.check_yaml_limits(data)
    loader = StrictLoader(data)
    try:
        root = loader.get_node() if loader.check_node() else None
        if root is None:
            return YamlDocument(None)
        repeated = _complaint(root)  # before merge keys are expanded in the nodes
        return YamlDocument(loader.construct_document(root), repeated)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise yaml.YAMLError(f"cannot decode a scalar by its tag: {error}") from None  # PyYAML checks no values
    finally:
        loader.dispose()


def _complaint(root: yaml.Node) -> Sequence[str]:
    lines = [f'  line {line}: key "{key}" already set in map' for line, key in _twice(root)]
    return ["yaml: unmarshal errors:\n" + "\n".join(lines)] if lines else []


def _twice(node: yaml.Node) -> Iterator[tuple[int, str]]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _twice(item)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    yield key.start_mark.line + 1, key.value
                seen.add(key.value)
            yield from _twice(value)
