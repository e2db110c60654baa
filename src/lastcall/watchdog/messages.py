"""What agents say to each other, one datagram each (pure): a question, and its answer. Both are signed with a shared key.

::

    question   "LCP1" "?" nonce (16)         HMAC-SHA256 (32)
    answer     "LCP1" "!" nonce (16) name    HMAC-SHA256 (32)

Who has the API server is silent: an answer says that it is lost, and nothing else can be said.

A nonce is drawn by who asks, once for each round of questions. So an answer that is repeated or held back counts from the
moment at which its question was asked, and not at all when that was forgotten. A question that is repeated brings an answer
that nobody waits for, of about its own length. Anything else is dropped: by its length before anything is computed.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.errors import InvalidInput
from lastcall.model.watchdog_peers import LEAST_KEY

NONCE = 16
LONGEST = 400
"""No datagram is longer."""

_MAGIC = b"LCP1"
_MAC = 32
_LONGEST_NAME = 253
_QUESTION = len(_MAGIC) + 1 + NONCE


@dataclass(frozen=True)
class Question:
    """Is the API server lost to you?"""

    nonce: bytes


@dataclass(frozen=True)
class Answer:
    """The API server is lost to node ``name``."""

    nonce: bytes
    name: str


def checked(keys: Sequence[bytes]) -> tuple[bytes, ...]:
    """The keys, the first of which signs; InvalidInput if there is none, or one is too short to keep a secret."""
    if not keys:
        raise InvalidInput("peers' keys", ["no key: a Secret with one of 32 bytes or more is needed"])
    sizes = enumerate(map(len, keys), 1)
    if short := [f"key {n}: {size} bytes: must be {LEAST_KEY} or more" for n, size in sizes if size < LEAST_KEY]:
        raise InvalidInput("peers' keys", short)
    return tuple(keys)


def encode(message: Question | Answer, keys: Sequence[bytes]) -> bytes:
    """Signed with the first of the keys."""
    if isinstance(message, Question):
        body = _MAGIC + b"?" + message.nonce
    else:
        body = _MAGIC + b"!" + message.nonce + message.name.encode()
    return body + _mac(body, keys[0])


def decode(data: bytes, keys: Sequence[bytes]) -> Question | Answer | None:
    """None if nobody who knows one of the keys has said it, or it cannot be understood."""
    if not _QUESTION + _MAC <= len(data) <= LONGEST or not data.startswith(_MAGIC):
        return None
    body, mac = data[:-_MAC], data[-_MAC:]
    if not any(hmac.compare_digest(mac, _mac(body, key)) for key in keys):
        return None
    kind, nonce, rest = body[len(_MAGIC) : len(_MAGIC) + 1], body[_QUESTION - NONCE : _QUESTION], body[_QUESTION:]
    if kind == b"?" and not rest:
        return Question(nonce)
    if kind == b"!" and 0 < len(rest) <= _LONGEST_NAME:
        return Answer(nonce, rest.decode(errors="replace"))
    return None


def _mac(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")
