"""YAML as Kubernetes reads it, and the fields that stand in it more than once, in the words of Go's library."""

from collections.abc import Iterator, Sequence

import yaml


class Loader(yaml.CSafeLoader):
    """Leaves times as the text that they are."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def repeated(data: bytes) -> Sequence[str]:
    """One complaint about all of them, or none."""
    root = yaml.compose(data, Loader=Loader)
    lines = [f'  line {line}: key "{key}" already set in map' for line, key in _twice(root)] if root else []
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
