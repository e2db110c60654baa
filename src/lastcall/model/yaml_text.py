"""YAML as Kubernetes parses it (sigs.k8s.io/yaml), with limits on the resources that a file can consume.

Plain scalars have the same meaning as there: ``yes`` and ``on`` are booleans, ``010`` and ``0o10`` are 8, ``1e3`` is a
number, while ``1:30``, ``=`` and dates are text. Only ``y`` and ``n`` differ: they are text, as in most parsers, so
that a name may be one letter. Keys are always text, and a duplicate key is an error. Nesting and aliases are limited.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError, SafeConstructor

MAX_DEPTH = 100
"""The most levels of nesting; a pod has about fifteen."""

MAX_ALIASED = 100_000
"""The most nodes that aliases may repeat in one document: stops the "billion laughs" attack, not normal files."""

NESTED_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
"""The problem of text that exceeds ``MAX_DEPTH``."""

PARSER_TOO_DEEP = "exceeded maximum nesting depth"
"""The problem that libyaml reports instead if it reads far enough ahead (since 0.2.6: 1000 levels)."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BOOL = r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
_TAG = "tag:yaml.org,2002:"


class _Composer(Composer):
    """Composes in Python, because libyaml's own composer crashes the process on deeply nested lists."""

    peek_event: Callable[[], Any]  # the parser's

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self._nodes = 0  # as if every alias were written out
        self._aliased = 0
        self._sizes: dict[str, int] = {}

    def compose_document(self) -> yaml.Node | None:
        self._nodes = self._aliased = 0
        self._sizes = {}
        return super().compose_document()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent):
            self._count_alias(event)
            return super().compose_node(parent, index)
        if self._depth >= MAX_DEPTH:
            raise ComposerError(None, None, NESTED_TOO_DEEP, event.start_mark)
        self._depth += 1
        before, self._nodes = self._nodes, self._nodes + 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor:
            self._sizes[event.anchor] = self._nodes - before
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise ComposerError(None, None, "a key must be text", key.start_mark)
            if key.tag == f"{_TAG}merge":
                continue
            key.tag = f"{_TAG}str"
            if key.value in keys:
                raise ComposerError(None, None, f'key "{key.value}" already set in map', key.start_mark)
            keys.add(key.value)
        return node

    def _count_alias(self, event: Any) -> None:
        if event.anchor in self.anchors and event.anchor not in self._sizes:
            raise ComposerError(None, None, f'anchor "{event.anchor}" contains itself', event.start_mark)
        size = self._sizes.get(event.anchor, 0)
        self._nodes += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise ComposerError(None, None, f"aliases repeat more than {MAX_ALIASED} nodes", event.start_mark)


class MergeKeys:
    """Merge keys (``<<``) for a loader: to be named before PyYAML's in its bases."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replaces merge keys: a mapping's own keys come first, then those of its sources in their order.

        PyYAML 6.0.4 compares keys by identity, so that a merged key of one letter hides the mapping's own.
        """
        own = [pair for pair in node.value if pair[0].tag != f"{_TAG}merge"]
        merged = {_key_identity(key): (key, value) for key, value in self._merged_pairs(node)}
        names = {_key_identity(key) for key, _ in own}
        node.value = [pair for name, pair in merged.items() if name not in names] + own

    def _merged_pairs(self, node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
        """Of all sources, the last one first: each pair hides those before it."""
        pairs: list[tuple[yaml.Node, yaml.Node]] = []
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
                for source in sources:
                    if not isinstance(source, yaml.MappingNode):
                        problem = f"expected a mapping or list of mappings for merging, but found {source.id}"
                        raise ConstructorError(None, None, problem, source.start_mark)
                    self.flatten_mapping(source)
                    pairs[:0] = source.value
        return pairs


def _key_identity(key: yaml.Node) -> Any:
    """Equal for two keys that are the same text; a key that is no scalar equals itself alone."""
    return key.value if isinstance(key, yaml.ScalarNode) else id(key)


class YamlLoader(MergeKeys, _Composer, _Base):  # type: ignore[misc]  # the base depends on the installed parser
    """For ``yaml.load_all``. Malformed text raises yaml.YAMLError; a wrong explicit tag may raise ValueError."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  (as PyYAML has it)

    def __init__(self, stream: str) -> None:
        _Composer.__init__(self)
        _Base.__init__(self, stream)


def _construct_int(loader: SafeConstructor, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    octal = re.fullmatch(r"([-+]?)0([0-7]+)", text)
    try:
        return int(octal[1] + octal[2], 8) if octal else int(text, 0)
    except ValueError as error:
        raise _constructor_error(node, "an integer") from error


def _construct_float(loader: SafeConstructor, node: yaml.ScalarNode) -> float | int:
    """A number without a fraction is an integer, as in Go's conversion to JSON."""
    text = str(loader.construct_scalar(node))
    try:
        number = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError as error:
        raise _constructor_error(node, "a number") from error
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def _construct_bool(loader: SafeConstructor, node: yaml.ScalarNode) -> bool:
    text = str(loader.construct_scalar(node))
    if not re.fullmatch(_BOOL, text):
        raise _constructor_error(node, "a boolean")
    return text.lower() in ("yes", "true", "on")


def _construct_timestamp(loader: SafeConstructor, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


def _constructor_error(node: yaml.ScalarNode, kind: str) -> ConstructorError:
    value = node.value if len(node.value) <= 60 else node.value[:57] + "..."
    mark: Any = node.start_mark
    return ConstructorError(None, None, f'"{value}" is not {kind} that can be read', mark)


for _tag, _pattern, _first in (
    ("bool", _BOOL, "yYnNtTfFoO"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[1-9][0-9_]*|0)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9_]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("merge", r"<<", "<"),
):
    YamlLoader.add_implicit_resolver(f"{_TAG}{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
for _tag, _read in (
    ("int", _construct_int),
    ("float", _construct_float),
    ("bool", _construct_bool),
    ("timestamp", _construct_timestamp),
):
    YamlLoader.add_constructor(f"{_TAG}{_tag}", _read)
