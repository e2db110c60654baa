"""Sentences with gaps: one line of a table both reads and writes them (pure).

A form is text such as ``reboot {nodes}[ for {lasts}]``: what stands in brackets may be left out, and what stands in
braces is a gap. A ``SentenceGap`` tells how its words look, and what they mean.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any, Generic, TypeVar

from lastcall.model import duration
from lastcall.report.formatting import format_exact_duration

EVERY_WORKLOAD = "every workload"
ALL_NODES = "all nodes"
HALF_OF_THE_NODES = "half of the nodes"

_WORD = r"[A-Za-z0-9][A-Za-z0-9._/-]*"
_NODE = rf"(?:{HALF_OF_THE_NODES}|{_WORD}(?: {_WORD})?)"
_TIME = r"(?:(?:\d+(?:\.\d*)?|\.\d+)[a-zµμ]+)+|0"
_PIECE = re.compile(r"(\[|\]|\{\w+\})")
_ALIKE = 0.35

M = TypeVar("M")


@dataclass(frozen=True)
class SentenceGap:
    """``pattern`` is what fits in, ``explained_text`` what stands there when a form is explained."""

    shown: str
    pattern: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def _parse_nodes(text: str) -> tuple[str, ...]:
    return tuple(re.split(", | and ", text))


def _join_nodes(nodes: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(nodes[:-1]), *nodes[-1:])))


def _parse_seconds(text: str) -> float:
    return duration.parse(text) / duration.SECOND


def _parse_part(text: str) -> float:
    part = Decimal(text.removesuffix("%")) / 100
    if part > 1:
        raise ValueError(f"{text} is more than 100%")
    return float(part)


def _format_percent(part: float) -> str:
    return f"{(Decimal(repr(part)) * 100).normalize():f}%"


def _parse_number(text: str) -> float:
    return float(int(text))


GAPS: Mapping[str, SentenceGap] = {
    "nodes": SentenceGap("NODES", rf"{_NODE}(?:(?:, | and ){_NODE})*", _parse_nodes, _join_nodes),
    "lasts": SentenceGap("DURATION", _TIME, _parse_seconds, format_exact_duration),
    "up_to": SentenceGap("DURATION", _TIME, _parse_seconds, format_exact_duration),
    "by": SentenceGap("DURATION", rf"[-+]?(?:{_TIME})", _parse_seconds, format_exact_duration),
    "part": SentenceGap("PERCENT", r"\d+(?:\.\d+)?%", _parse_part, _format_percent),
    "number": SentenceGap("NUMBER", r"\d+", _parse_number, lambda number: f"{number:.0f}"),
    "surge": SentenceGap("with surge", "with surge", bool, lambda _: "with surge"),
    "on_timeout": SentenceGap("POLICY", "stop|delete|force", str, str),
    "right": SentenceGap("VERB RESOURCE", r"[a-z]+ [a-z]+(?:/[a-z]+)?", str, str),
    "other": SentenceGap("NODE", _WORD, str, str),
    "subject": SentenceGap(
        "WORKLOAD",
        rf"{EVERY_WORKLOAD}|{_WORD}",
        lambda text: "" if text == EVERY_WORKLOAD else text,
        lambda name: name or EVERY_WORKLOAD,
    ),
}


@dataclass(frozen=True)
class SentenceForm(Generic[M]):
    """One way to say something. ``gaps`` maps the names in braces to the fields of what is meant."""

    means: M
    text: str
    about: str
    """What it does, for those who look it up."""
    gaps: Mapping[str, str] = field(default_factory=dict)

    @property
    def explained_text(self) -> str:
        """With what to put into the gaps: ``reboot NODES[ for DURATION]``."""
        return re.sub(r"\{(\w+)\}", lambda match: "s" if match[1] == "s" else GAPS[match[1]].shown, self.text)

    @property
    def field_names(self) -> set[str]:
        """Of what is meant, those that it can say."""
        return {self.gaps.get(name, name) for name in _gap_names(self.text)}

    def read(self, sentence: str) -> dict[str, Any] | None:
        """The fields that it says; None if it is another sentence. ValueError if what is in a gap makes no sense."""
        match = self._compile_pattern.fullmatch(sentence)
        if not match:
            return None
        said = {name: text for name, text in match.groupdict().items() if text is not None}
        return {self.gaps.get(name, name): GAPS[name].read(text) for name, text in said.items()}

    def write(self, values: Mapping[str, Any]) -> str:
        """The sentence; a part in brackets is left out if nothing is to be said in it."""
        return "".join(
            self._fill_part(part, values)
            for optional, part in self._split_parts()
            if not optional or any(_is_value(name, values[self.gaps.get(name, name)]) for name in _gap_names(part))
        )

    def fills_gaps(self, values: Mapping[str, Any]) -> bool:
        """Whether there is something to say in every gap that must be filled."""
        names = [name for optional, part in self._split_parts() if not optional for name in _gap_names(part)]
        return all(values[self.gaps.get(name, name)] for name in names if name != "subject")

    @cached_property
    def _compile_pattern(self) -> re.Pattern[str]:
        return re.compile("".join(_piece_pattern(piece) for piece in _PIECE.split(self.text)))

    def _split_parts(self) -> Iterator[tuple[bool, str]]:
        for part in re.findall(r"\[[^]]*\]|[^[]+", self.text):
            yield part.startswith("["), part.strip("[]")

    def _fill_part(self, part: str, values: Mapping[str, Any]) -> str:
        def filled(match: re.Match[str]) -> str:
            if match[1] == "s":
                return "" if values[self.gaps["number"]] == 1 else "s"
            return GAPS[match[1]].write(values[self.gaps.get(match[1], match[1])])

        return re.sub(r"\{(\w+)\}", filled, part)


def read_sentence(sentence: str, forms: Sequence[SentenceForm[M]]) -> tuple[M, dict[str, Any]]:
    """What a sentence means; ValueError names the forms that are most like it."""
    tidy = " ".join(sentence.split()).removesuffix(".")
    for form in forms:
        values = form.read(tidy)
        if values is not None:
            return form.means, values
    near = " or ".join(f'"{form.explained_text}"' for form in nearest_forms(tidy, forms))
    raise ValueError(f"is not understood; it could be {near}")


def write_sentence(means: M, values: Mapping[str, Any], forms: Sequence[SentenceForm[M]]) -> str:
    """The sentence for it: by the first of its forms that leaves no gap empty, else by the first."""
    known = [form for form in forms if form.means is means]
    return next((form for form in known if form.fills_gaps(values)), known[0]).write(values)


def nearest_forms(sentence: str, forms: Sequence[SentenceForm[M]]) -> list[SentenceForm[M]]:
    """Up to three forms, the most alike first; at least one."""

    def alike(form: SentenceForm[M]) -> float:
        words = re.sub(r"[A-Z]{4,}", "", form.explained_text.partition("[")[0])
        return SequenceMatcher(None, sentence, words, autojunk=False).ratio()

    ranked = sorted(forms, key=alike, reverse=True)
    best = alike(ranked[0])
    return [ranked[0], *(form for form in ranked[1:3] if alike(form) > max(_ALIKE, best - 0.15))]


def _gap_names(text: str) -> list[str]:
    """Of the gaps in it."""
    return re.findall(r"\{(\w\w+)\}", text)


def _is_value(gap: str, value: Any) -> bool:
    """Whether a value is one: no time at all is one, other nothings are not."""
    return value is not None if gap == "lasts" else bool(value)


def _piece_pattern(piece: str) -> str:
    if piece in ("[", "]"):
        return {"[": "(?:", "]": ")?"}[piece]
    if piece == "{s}":
        return "s?"
    if piece.startswith("{"):
        return f"(?P<{piece[1:-1]}>{GAPS[piece[1:-1]].pattern})"
    return re.escape(piece)
