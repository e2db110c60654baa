"""The messages between agents, one datagram each (pure): a question and its answer, signed with a shared key.

::

  question   "LCP2" "?" nonce (16) asked (8) length of boot id (1) boot id name    HMAC-SHA256 (32)
  answer     "LCP2" "!" nonce (16) name                                            HMAC-SHA256 (32)

A question names its sender, and so proves that this boot of the sender's node is alive. ``asked`` is a big-endian
number. Only a node that has lost the API server answers, so an answer has one meaning: the API server is lost.

The asking node draws a nonce for each round of questions. A replayed or delayed answer therefore counts from the time
of its question, and not at all once that question is forgotten. A replayed question causes one unexpected answer, which
is no longer than the question if names are of equal length. Evidence that the sender is alive rests on ``asked``, which
increases with each question of a boot. Anything else is dropped, by its length before any signature is computed.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.errors import InvalidInput
from lastcall.model.watchdog_peers import LEAST_KEY

NONCE = 16
LONGEST = 400
"""The longest datagram in bytes."""

_MAGIC = b"LCP2"
_MAC = 32
_ASKED = 8
_LONGEST_NAME, _LONGEST_BOOT_ID = 253, 64
_HEAD = len(_MAGIC) + 1 + NONCE


@dataclass(frozen=True)
class PeerQuestion:
    """Asks whether the receiver has lost the API server. Node ``name`` has lost it, in this boot."""

    nonce: bytes
    name: str
    boot_id: str
    asked: int
    """The time of the question in milliseconds, on the sender's monotonic clock, which restarts at each boot."""


@dataclass(frozen=True)
class PeerAnswer:
    """Reports that node ``name`` has lost the API server."""

    nonce: bytes
    name: str


def validate_keys(keys: Sequence[bytes]) -> tuple[bytes, ...]:
    """The keys, of which the first signs. InvalidInput if there is none, or one is too short to be secure."""
    if not keys:
        raise InvalidInput("peers' keys", ["no key: a Secret with one of 32 bytes or more is needed"])
    sizes = enumerate(map(len, keys), 1)
    if short := [f"key {n}: {size} bytes: must be {LEAST_KEY} or more" for n, size in sizes if size < LEAST_KEY]:
        raise InvalidInput("peers' keys", short)
    return tuple(keys)


def encode_message(message: PeerQuestion | PeerAnswer, keys: Sequence[bytes]) -> bytes:
    """The datagram, signed with the first key."""
    if isinstance(message, PeerQuestion):
        boot_id = message.boot_id.encode()
        who = message.asked.to_bytes(_ASKED) + bytes([len(boot_id)]) + boot_id + message.name.encode()
        body = _MAGIC + b"?" + message.nonce + who
    else:
        body = _MAGIC + b"!" + message.nonce + message.name.encode()
    return body + _compute_mac(body, keys[0])


def is_plausible(data: bytes) -> bool:
    """Whether the data may be a message, by two cheap checks: its length and its first bytes."""
    return _HEAD + _MAC <= len(data) <= LONGEST and data.startswith(_MAGIC)


def decode_message(data: bytes, keys: Sequence[bytes]) -> PeerQuestion | PeerAnswer | None:
    """The message; None if none of the keys signed it or its content is malformed."""
    if not is_plausible(data):
        return None
    body, mac = data[:-_MAC], data[-_MAC:]
    if not any(hmac.compare_digest(mac, _compute_mac(body, key)) for key in keys):
        return None
    kind, nonce, rest = body[len(_MAGIC) : len(_MAGIC) + 1], body[_HEAD - NONCE : _HEAD], body[_HEAD:]
    if kind == b"?":
        return _parse_question(nonce, rest)
    if kind == b"!" and 0 < len(rest) <= _LONGEST_NAME:
        return PeerAnswer(nonce, rest.decode(errors="replace"))
    return None


def _parse_question(nonce: bytes, who: bytes) -> PeerQuestion | None:
    if len(who) <= _ASKED:
        return None
    asked, length, rest = int.from_bytes(who[:_ASKED]), who[_ASKED], who[_ASKED + 1 :]
    boot_id, name = rest[:length], rest[length:]
    if not 0 < length <= _LONGEST_BOOT_ID or not 0 < len(name) <= _LONGEST_NAME:
        return None
    return PeerQuestion(nonce, name.decode(errors="replace"), boot_id.decode(errors="replace"), asked)


def _compute_mac(body: bytes, key: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")
