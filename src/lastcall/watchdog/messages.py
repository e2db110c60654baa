"""What agents say to each other, one datagram each (pure): a question, and its answer. Both are signed with a shared key.

::

    question   "LCP2" "?" nonce (16) asked (8) length of boot id (1) boot id name    HMAC-SHA256 (32)
    answer     "LCP2" "!" nonce (16) name                                            HMAC-SHA256 (32)

A question says whose it is, and so that this boot of its node lives: ``asked`` is a number, the highest byte first. Who has the
API server is silent: an answer says that it is lost, and nothing else can be said.

A nonce is drawn by who asks, once for each round of questions. So an answer that is repeated or held back counts from the
moment at which its question was asked, and not at all when that was forgotten. A question that is repeated brings an answer
that nobody waits for, no longer than itself if names are of one length; who notes that its sender lives goes by ``asked``, which
is higher in each later question of a boot. Anything else is dropped: by its length before anything is computed.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from lastcall.errors import InvalidInput
from lastcall.model.watchdog_peers import LEAST_KEY

NONCE = 16
LONGEST = 400
"""No datagram is longer."""

_MAGIC = b"LCP2"
_MAC = 32
_ASKED = 8
_LONGEST_NAME, _LONGEST_BOOT_ID = 253, 64
_HEAD = len(_MAGIC) + 1 + NONCE


@dataclass(frozen=True)
class PeerQuestion:
    """Is the API server lost to you? It is lost to node ``name``, in this boot."""

    nonce: bytes
    name: str
    boot_id: str
    asked: int
    """When it asked, in milliseconds by its own clock, which stands still at no time and begins anew with a boot."""


@dataclass(frozen=True)
class PeerAnswer:
    """The API server is lost to node ``name``."""

    nonce: bytes
    name: str


def validate_keys(keys: Sequence[bytes]) -> tuple[bytes, ...]:
    """The keys, the first of which signs; InvalidInput if there is none, or one is too short to keep a secret."""
    if not keys:
        raise InvalidInput("peers' keys", ["no key: a Secret with one of 32 bytes or more is needed"])
    sizes = enumerate(map(len, keys), 1)
    if short := [f"key {n}: {size} bytes: must be {LEAST_KEY} or more" for n, size in sizes if size < LEAST_KEY]:
        raise InvalidInput("peers' keys", short)
    return tuple(keys)


def encode_message(message: PeerQuestion | PeerAnswer, keys: Sequence[bytes]) -> bytes:
    """Signed with the first of the keys."""
    if isinstance(message, PeerQuestion):
        boot_id = message.boot_id.encode()
        who = message.asked.to_bytes(_ASKED) + bytes([len(boot_id)]) + boot_id + message.name.encode()
        body = _MAGIC + b"?" + message.nonce + who
    else:
        body = _MAGIC + b"!" + message.nonce + message.name.encode()
    return body + _compute_mac(body, keys[0])


def is_plausible(data: bytes) -> bool:
    """Whether it may be a message, by what costs nothing to see: its length and how it begins."""
    return _HEAD + _MAC <= len(data) <= LONGEST and data.startswith(_MAGIC)


def decode_message(data: bytes, keys: Sequence[bytes]) -> PeerQuestion | PeerAnswer | None:
    """None if nobody who knows one of the keys has said it, or it cannot be understood."""
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
