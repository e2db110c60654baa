"""Derives the type of a CEL expression like cel-go's checker (pure).

The library that evaluates expressions has no type checker, but Kubernetes rejects a match condition that is no bool
when it is written. So this module parses the expression again for its types only. Types have cel-go's names: ``bool``,
``int``, ``list(string)``, ``dyn``. An unknown function yields no type, and then nothing is rejected.
"""

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lastcall_lab.apiserver.cel import signatures
from lastcall_lab.apiserver.cel.signatures import DYN, Type, element_type, join_types, key_type, value_type

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>(?P<prefix>[rRbB]{0,2})(?:'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
    |(?P<number>0[xX][0-9a-fA-F]+[uU]?|(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?[uU]?)
    |(?P<name>[A-Za-z_]\w*|`[^`]*`)
    |(?P<sign>\.\?|\[\?|&&|\|\||[<>=!]=|[-+*/%<>!?:.,()\[\]{}])""",
    re.DOTALL | re.VERBOSE,
)
_SUMS, _PRODUCTS = ("+", "-"), ("*", "/", "%")
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
_LITERALS = {"true": "bool", "false": "bool", "null": "null_type"}
_BOOLEAN_MACROS = frozenset({"all", "exists", "exists_one", "existsOne"})
_SCALARS = frozenset({"bool", "int", "uint", "double", "string", "bytes"})
_MACROS = _BOOLEAN_MACROS | {"map", "filter"}


class UnreadableExpression(Exception):
    """The expression cannot be parsed."""


class WrongType(Exception):
    """A field that its type does not have, or a list or map with mixed types; the text is cel-go's.

    ``start`` is its position in the expression.
    """

    def __init__(self, start: int, why: str) -> None:
        super().__init__(why)
        self.start = start


def expression_type(expression: str, variables: Mapping[str, Type], fields: Mapping[str, Mapping[str, Type]]) -> Type:
    """The type of the expression; None if it cannot be derived. WrongType if cel-go would reject it.

    ``variables`` are the types of the known names; ``fields`` are those of the fields of object types.
    """
    try:
        reader = _TypeReader(_tokens(expression), dict(variables), fields)
        found = reader.expression()
        return signatures.settle_type(found) if reader.at_end else None
    except (UnreadableExpression, IndexError, RecursionError):
        return None


class _CelToken(NamedTuple):
    kind: str
    text: str
    start: int


def _tokens(expression: str) -> list[_CelToken]:
    found, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise UnreadableExpression
        if match["text"]:
            found.append(_CelToken("bytes" if "b" in (match["prefix"] or "").lower() else "string", match["text"], at))
        elif not match["space"]:
            found.append(_CelToken(match.lastgroup or "", match[0], at))
        at = match.end()
    return found


class _TypeReader:
    """A recursive descent parser; each method returns the type of what it has parsed."""

    def __init__(
        self, tokens: list[_CelToken], variables: dict[str, Type], fields: Mapping[str, Mapping[str, Type]]
    ) -> None:
        self._tokens = tokens
        self._at = 0
        self._variables = variables
        self._fields = fields

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def expression(self) -> Type:
        condition = self._either()
        if not self._take("?"):
            return condition
        first = self._either()
        self._expect(":")
        return join_types(first, self.expression())

    def _either(self) -> Type:
        return self._binary(("||",), self._both, lambda a, b: "bool")

    def _both(self) -> Type:
        return self._binary(("&&",), self._relation, lambda a, b: "bool")

    def _relation(self) -> Type:
        return self._binary(_RELATIONS, self._sum, lambda a, b: "bool")

    def _sum(self) -> Type:
        return self._binary(_SUMS, self._product, signatures.arithmetic_type)

    def _product(self) -> Type:
        return self._binary(_PRODUCTS, self._unary, signatures.arithmetic_type)

    def _binary(
        self, signs: tuple[str, ...], below: Callable[[], Type], combined: Callable[[Type, Type], Type]
    ) -> Type:
        left = below()
        while self._next in signs:
            self._at += 1
            left = combined(left, below())
        return left

    def _unary(self) -> Type:
        if self._take("!"):
            self._unary()
            return "bool"
        return self._unary() if self._take("-") else self._member()

    def _member(self) -> Type:
        found = self._primary()
        while True:
            if self._take("."):
                found = self._read_selection(found)
            elif self._take(".?"):
                self._name()
                found = f"optional_type({signatures.unwrap_optional(found) and DYN})"
            elif self._take("["):
                self.expression()
                self._expect("]")
                found = _at_index(found)
            elif self._take("[?"):
                self.expression()
                self._expect("]")
                found = f"optional_type({_at_index(signatures.unwrap_optional(found)) or DYN})"
            else:
                return found

    def _read_selection(self, base: Type) -> Type:
        name = self._name()
        if not self._take("("):
            return self._field(base, name)
        if name in _MACROS and self._tokens[self._at].kind == "name" and self._tokens[self._at + 1].text == ",":
            return self._macro(base, name)
        return signatures.method_type(base, name, self._arguments())

    @property
    def _dot(self) -> int:
        """The position of the dot before the field name just parsed."""
        return self._tokens[self._at - 2].start

    def _field(self, base: Type, name: str) -> Type:
        if base is not None and base.startswith("optional_type("):
            return f"optional_type({self._field(signatures.unwrap_optional(base), name) or DYN})"
        if base is None or base in (DYN, "any"):
            return base
        if base in self._fields:
            if name not in self._fields[base]:
                raise WrongType(self._dot, f"undefined field '{name}'")
            return self._fields[base][name]
        if base in _SCALARS or base.startswith("list("):
            raise WrongType(self._dot, f"type '{base}' does not support field selection")
        return value_type(base)

    def _macro(self, base: Type, name: str) -> Type:
        variable = self._name()
        self._expect(",")
        before = self._variables.get(variable)
        self._variables[variable] = key_type(base) if (base or "").startswith("map(") else element_type(base)
        found = self.expression()
        while self._take(","):
            found = self.expression()
        self._expect(")")
        self._variables[variable] = before
        if name in _BOOLEAN_MACROS:
            return "bool"
        if name == "map":
            return f"list({found})" if found else None
        return base if (base or "").startswith("list(") else f"list({key_type(base)})" if key_type(base) else None

    def _primary(self) -> Type:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind in ("string", "bytes"):
            return token.kind
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "name":
            return self._read_name(token.text)
        if token.text == "(":
            found = self.expression()
            self._expect(")")
            return found
        if token.text == "[":
            return self._list()
        if token.text == "{":
            return self._map()
        if token.text == ".":
            return self._primary()
        raise UnreadableExpression

    def _read_name(self, name: str) -> Type:
        if name in _LITERALS:
            return _LITERALS[name]
        if self._next == "(":
            self._at += 1
            return signatures.function_type(name, self._arguments())
        if name in ("Object", "JSONPatch"):
            return self._read_object(name)
        if name in signatures.PACKAGES and name not in self._variables and self._next == ".":
            self._at += 1
            inner = self._name()
            self._expect("(")
            return signatures.function_type(f"{name}.{inner}", self._arguments())
        if name not in self._variables:
            raise UnreadableExpression
        return self._variables[name]

    def _read_object(self, name: str) -> Type:
        """An object construction: ``Object.spec{replicas: 1}``."""
        while self._take("."):
            name = f"{name}.{self._name()}"
        self._expect("{")
        while not self._take("}"):
            self._take("?")
            self._name()
            self._expect(":")
            self.expression()
            self._take(",")
        return name

    def _list(self) -> Type:
        items: Type = signatures.OPEN
        while not self._take("]"):
            self._take("?")
            items = self._join_items(items)
            self._take(",")
        return f"list({items})" if items else None

    def _map(self) -> Type:
        keys: Type = signatures.OPEN
        values: Type = signatures.OPEN
        while not self._take("}"):
            self._take("?")
            keys = self._join_items(keys)
            self._expect(":")
            values = self._join_items(values)
            self._take(",")
        return f"map({keys}, {values})" if keys and values else None

    def _join_items(self, others: Type) -> Type:
        """The common type of all items so far: of a list, or of the keys or values of a map."""
        start = self._at
        found = self.expression()
        both = signatures.common_type(others, found)
        if both is None and others and found:
            token = self._at - 2 if self._tokens[self._at - 2].text == "." else start
            raise WrongType(self._tokens[token].start, f"expected type '{others}' but found '{found}'")
        return both

    def _arguments(self) -> list[Type]:
        found = []
        while not self._take(")"):
            found.append(self.expression())
            self._take(",")
        return found

    # -- tokens --------------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> str:
        if self.at_end or self._tokens[self._at].kind in ("string", "bytes"):
            return ""
        return self._tokens[self._at].text

    def _take(self, text: str) -> bool:
        if self._next != text:
            return False
        self._at += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise UnreadableExpression

    def _name(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        if token.kind != "name":
            raise UnreadableExpression
        return token.text.strip("`")


def _number(text: str) -> Type:
    if text[-1] in "uU":
        return "uint"
    return "int" if text.isdigit() or text.lower().startswith("0x") else "double"


def _at_index(base: Type) -> Type:
    if base is not None and base.startswith("optional_type("):
        return f"optional_type({_at_index(signatures.unwrap_optional(base)) or DYN})"
    if base in (None, DYN):
        return base
    return value_type(base) if (base or "").startswith("map(") else element_type(base)
