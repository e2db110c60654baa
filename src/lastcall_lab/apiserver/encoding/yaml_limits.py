"""Limits on YAML (pure): its depth, and its growth through aliases.

The rules are those of ``go.yaml.in/yaml`` (``decode.go``, ``scannerc.go``). They are checked on the parser's events,
before anything is built: a few hundred bytes can expand to gigabytes, and excessive depth crashes the process in the
parser.
"""

from dataclasses import dataclass, field

import yaml

from lastcall.model.yaml_text import PARSER_TOO_DEEP
from lastcall_lab.apiserver.encoding.go_json import MAX_DEPTH

MAX_EXPANDED_BYTES = 3 * 1024 * 1024
"""The size of all scalars with aliases expanded: the same limit as for a JSON body."""

_TOO_DEEP = f"exceeded max depth of {MAX_DEPTH}"
_FEW_NODES, _MANY_NODES = 400_000, 4_000_000
_FREE_NODES, _FREE_ALIASED = 1_000, 100


class TooComplex(yaml.YAMLError):
    """The text exceeds a limit; ``problem`` is the message of Go's library."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass
class _Subtree:
    """The size of a node with all aliases expanded."""

    anchor: str | None
    nodes: int = 1
    aliased: int = 0
    size: int = 0


@dataclass
class _Document:
    """The first document of a text, as far as its events have come."""

    open: list[_Subtree] = field(default_factory=lambda: [_Subtree(None, nodes=0)])
    anchors: dict[str, _Subtree] = field(default_factory=dict)

    def add_event(self, event: yaml.Event) -> None:
        """TooComplex if a limit is exceeded."""
        if isinstance(event, yaml.ScalarEvent):
            self.scalar(event.anchor, event.value)
        elif isinstance(event, yaml.CollectionStartEvent):
            self.begin(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.end()
        elif isinstance(event, yaml.AliasEvent):
            self.alias(event.anchor or "")

    def begin(self, anchor: str | None) -> None:
        if len(self.open) > MAX_DEPTH:
            raise TooComplex(_TOO_DEEP)
        self.open.append(_Subtree(anchor))

    def end(self) -> None:
        self._add(self.open.pop())

    def scalar(self, anchor: str | None, value: str) -> None:
        self._add(_Subtree(anchor, size=len(value)))

    def alias(self, anchor: str) -> None:
        if any(one.anchor == anchor for one in self.open):
            raise TooComplex(f"anchor '{anchor}' value contains itself")
        if target := self.anchors.get(anchor):  # otherwise the composer rejects it
            self._add(_Subtree(None, 1 + target.nodes, target.nodes, target.size))
            self._check()

    def _add(self, done: _Subtree) -> None:
        if done.anchor:
            self.anchors[done.anchor] = done
        around = self.open[-1]
        around.nodes += done.nodes
        around.aliased += done.aliased
        around.size += done.size

    def _check(self) -> None:
        nodes = sum(one.nodes for one in self.open)
        aliased = sum(one.aliased for one in self.open)
        many = aliased > _FREE_ALIASED and nodes > _FREE_NODES and aliased / nodes > _allowed_share(nodes)
        if many or sum(one.size for one in self.open) > MAX_EXPANDED_BYTES:
            raise TooComplex("document contains excessive aliasing")


def _allowed_share(nodes: int) -> float:
    """The allowed share of nodes from aliases (``allowedAliasRatio``)."""
    beyond = (min(max(nodes, _FEW_NODES), _MANY_NODES) - _FEW_NODES) / (_MANY_NODES - _FEW_NODES)
    return 0.99 - 0.89 * beyond


def check_yaml_limits(data: bytes) -> None:
    """TooComplex if the first document exceeds a limit; yaml.YAMLError if the text is invalid."""
    document = _Document()
    try:
        for event in yaml.parse(data, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.DocumentEndEvent):
                return
            document.add_event(event)
    except yaml.MarkedYAMLError as error:
        if error.problem == PARSER_TOO_DEEP:
            raise TooComplex(_TOO_DEEP) from error
        raise
