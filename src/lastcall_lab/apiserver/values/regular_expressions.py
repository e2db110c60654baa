"""Regular expressions in Go's syntax (RE2), matched in linear time (pure).

Clients' schemas and CEL expressions contain them, and Python's engine backtracks: a pattern of seven characters would
block it for hours.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

_SINGLE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""An escape of RE2 that Go does not have."""

_WORDS: Mapping[str, str] = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""RE2's error messages, and Go's (``regexp/syntax.ErrorCode``) where they differ."""


class MalformedPattern(ValueError):
    """The pattern is invalid; the message is that of Go's package ``regexp``."""


@lru_cache(maxsize=128)
def compile_pattern(pattern: str) -> Any:
    """A pattern with ``search`` and ``finditer`` like those of ``re``. MalformedPattern if it is invalid."""
    if _SINGLE_BYTE.search(pattern):
        raise MalformedPattern("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        said = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error.args[0])
        raise MalformedPattern(_in_words_of_go(said)) from None


def _in_words_of_go(said: str) -> str:
    what, _, where = said.partition(": ")
    if what not in _WORDS and "too large" in what:
        return "error parsing regexp: expression too large"
    return f"error parsing regexp: {_WORDS.get(what, what)}: `{where}`"
