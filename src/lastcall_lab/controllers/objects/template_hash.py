"""Short hashes of templates: equal templates have equal hashes (``k8s.io/kubernetes/pkg/util/hash``).

The alphabet is that of Kubernetes, so that names look familiar. The hash itself differs, because Kubernetes hashes its
own structures in memory.
"""

import json
from typing import Any

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""``k8s.io/apimachinery/pkg/util/rand``."""

_START, _PRIME = 2166136261, 16777619
"""FNV of 32 bits."""


def short_hash(content: Any, collisions: int | None = None) -> str:
    """Up to ten letters. ``collisions`` gives another hash if the name is taken."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return _safe_encode(_fnv_hash(text.encode() + (b"" if not collisions else str(collisions).encode())))


def _fnv_hash(data: bytes) -> int:
    value = _START
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return value


def _safe_encode(number: int) -> str:
    """``rand.SafeEncodeString``: digits become letters that make no words."""
    return "".join(_LETTERS[ord(digit) % len(_LETTERS)] for digit in str(number))
