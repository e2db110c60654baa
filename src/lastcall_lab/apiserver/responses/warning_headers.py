"""The Warning headers of a response (``k8s.io/apiserver/pkg/endpoints/filters/warning.go``), pure."""

import unicodedata
from collections.abc import Sequence

_ALL, _ONE = 4096, 256
"""Characters: the total before long warnings are truncated, and the length of a truncated one."""


def warning_headers(texts: Sequence[str]) -> list[str]:
    """One header per valid text, in order, without duplicates; UTF-8 bytes as latin-1."""
    distinct = [text for text in dict.fromkeys(texts) if text and not any(map(_control, text))]
    if sum(map(len, distinct)) <= _ALL:
        return [_header(text) for text in distinct]
    said, length = [], 0
    for text in distinct:
        if length >= _ALL:
            break
        said.append(_header(text[:_ONE]))
        length += len(text[:_ONE])
    return said


def _header(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode().decode("latin-1")


def _control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"
