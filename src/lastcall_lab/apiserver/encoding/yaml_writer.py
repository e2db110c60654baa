"""Writes YAML like Kubernetes' servers (``sigs.k8s.io/yaml``): sorted keys, double quotes where needed."""

import re
from typing import Any

import yaml

_STRING = "tag:yaml.org,2002:str"
_RESOLVER = yaml.resolver.Resolver()
_BOOLEANS = ("y", "Y", "n", "N")
"""YAML 1.1 booleans that Go's library knows and PyYAML does not."""

_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?0o[0-7]+")
"""Numbers of Go's library; PyYAML considers 1e3 text."""


class _Writer(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(writer: _Writer, text: str) -> yaml.Node:
    """Double quotes for ambiguous text, a block for several lines."""
    if "\n" in text:
        return writer.represent_scalar(_STRING, text, style="|")
    return writer.represent_scalar(_STRING, text, style='"' if _ambiguous(text) else None)


def _ambiguous(text: str) -> bool:
    if text in _BOOLEANS or _NUMBER.fullmatch(text):
        return True
    return bool(_RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) != _STRING)  # type: ignore[no-untyped-call]


_Writer.add_representer(str, _text)


def dump_yaml(obj: Any) -> bytes:
    """The object as YAML."""
    return yaml.dump(obj, Dumper=_Writer, sort_keys=True, allow_unicode=True, width=2**30).encode()
