"""Parses label selectors of options and of the parameter ``labelSelector``: ``app=x,tier in (a,b),!old`` (pure).

Grammar, order of checks and messages are those of ``k8s.io/apimachinery/pkg/labels``.
"""

import json
from typing import NamedTuple

from lastcall.model import name_rules
from lastcall.model.label_selector import Requirement, parse_integer

_SPECIAL = "=!(),<>"
_SPACE = " \t\r\n"
_SYMBOLS = (")", ",", "!", "==", "=", "!=", "(", ">", "<")
_WORDS = ("in", "notin")
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_BINARY = "in, notin, =, ==, !=, gt, lt"


class _QueryToken(NamedTuple):
    """``kind`` is the symbol or word itself, ``identifier``, ``end`` or ``error``."""

    kind: str
    text: str

    @property
    def value(self) -> str:
        """The kind where ``in`` and ``notin`` may also be names."""
        return "identifier" if self.kind in _WORDS else self.kind


def parse_label_query(text: str) -> list[Requirement]:
    """The requirements, by key. ValueError if it is invalid."""
    parser = _Parser(_tokens(text))
    return sorted(parser.requirements(), key=lambda one: one.key)


# -- tokens of the query -----------------------------------------------------------------------------------------------


def _tokens(text: str) -> list[_QueryToken]:
    found: list[_QueryToken] = []
    text, at = text.partition("\0")[0], 0
    while True:
        while at < len(text) and text[at] in _SPACE:
            at += 1
        if at == len(text):
            return [*found, _QueryToken("end", "")]
        token, at = _symbol(text, at) if text[at] in _SPECIAL else _word(text, at)
        found.append(token)


def _word(text: str, at: int) -> tuple[_QueryToken, int]:
    end = at
    while end < len(text) and text[end] not in _SPECIAL and text[end] not in _SPACE:
        end += 1
    word = text[at:end]
    return _QueryToken(word if word in _WORDS else "identifier", word), end


def _symbol(text: str, at: int) -> tuple[_QueryToken, int]:
    """The longest symbol that begins here."""
    for length in (2, 1):
        if (symbol := text[at : at + length]) in _SYMBOLS:
            return _QueryToken(symbol, symbol), at + len(symbol)
    end = at
    while end < len(text) and text[end] in _SPECIAL:
        end += 1
    return _QueryToken("error", f"error expected: keyword found '{text[at:end]}'"), end


# -- grammar -----------------------------------------------------------------------------------------------------------


class _Parser:
    def __init__(self, tokens: list[_QueryToken]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _QueryToken:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _take(self) -> _QueryToken:
        token = self._next
        self._at += 1
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while self._next.kind != "end":
            if self._next.value not in ("identifier", "!"):
                raise ValueError(f"found '{self._next.text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            after = self._take()
            if after.kind not in (",", "end"):
                raise ValueError(f"found '{after.text}', expected: ',' or 'end of string'")
            if after.kind == "," and self._next.value not in ("identifier", "!"):
                raise ValueError(f"found '{self._next.text}', expected: identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        absent = self._next.kind == "!"
        if absent:
            self._take()
        token = self._take()
        if token.value != "identifier":
            raise ValueError(f"found '{token.text}', expected: identifier")
        if wrong := name_rules.qualified_name_error(token.text):
            raise ValueError(f"<nil>: Invalid value: {_quote_text(token.text)}: {wrong}")
        if absent:
            return Requirement(token.text, "DoesNotExist")
        if self._next.kind in ("end", ","):
            return Requirement(token.text, "Exists")
        return self._comparison(token.text)

    def _comparison(self, key: str) -> Requirement:
        token = self._take()
        operator = _OPERATORS.get(token.kind)
        if operator is None:
            raise ValueError(f"found '{token.text}', expected: {_BINARY}")
        values = self._set() if token.kind in _WORDS else {self._value()}
        return _check_requirement(Requirement(key, operator, tuple(sorted(values))))

    def _value(self) -> str:
        if self._next.kind in ("end", ","):
            return ""
        token = self._take()
        if token.value != "identifier":
            raise ValueError(f"found '{token.text}', expected: identifier")
        return token.text

    def _set(self) -> set[str]:
        token = self._take()
        if token.kind != "(":
            raise ValueError(f"found '{token.text}' expected: '('")
        if self._next.kind == ")":
            self._take()
            return {""}
        if self._next.value not in ("identifier", ","):
            raise ValueError(f"found '{self._next.text}', expected: ',', ')' or identifier")
        values = self._members()
        self._take()
        return values

    def _members(self) -> set[str]:
        """The values up to the closing parenthesis; a missing one beside a comma is the empty string."""
        values: set[str] = set()
        while True:
            token = self._take()
            if token.value == "identifier":
                values.add(token.text)
                if self._next.kind == ")":
                    return values
                if self._next.kind != ",":
                    raise ValueError(f"found '{self._next.text}', expected: ',' or ')'")
            elif token.kind == ",":
                if not values or self._next.kind in (")", ","):
                    values.add("")
                if self._next.kind == ")":
                    return values
            else:
                raise ValueError(f"found '{token.text}', expected: ',', or identifier")


def _check_requirement(one: Requirement) -> Requirement:
    """ValueError if a value is no valid label value (``labels.NewRequirement``)."""
    wrong = []
    for index, value in enumerate(one.values):
        path = f"values[{index}]"
        if one.operator in ("Gt", "Lt") and parse_integer(value) is None:
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            wrong.append(f"{path}: Invalid value: {_quote_text(value)}: {why}")
        if why := name_rules.label_value_error(value):
            wrong.append(f"{path}[{one.key}]: Invalid value: {_quote_text(value)}: {why}")
    if wrong:
        raise ValueError(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    return one


def _quote_text(text: str) -> str:
    """As Go quotes text in messages."""
    return json.dumps(text, ensure_ascii=False)
