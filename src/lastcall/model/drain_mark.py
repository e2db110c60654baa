"""The annotation ``lastcall.dev/drain`` of a Node: the drain that works on it, and what of the Node is its own (pure)."""

from collections.abc import Mapping

import msgspec

from lastcall.model.base import Facts, Time
from lastcall.model.foreign_text import plain_text
from lastcall.names import DRAIN_MARK


class DrainMark(Facts, frozen=True):
    """``id`` stays the same when another run resumes the drain, and so does ``since``.

    ``cordoned``: the drain has cordoned the Node, which was schedulable before. ``spent`` are the seconds that runs of
    this drain took so far; the time between two runs does not count.
    """

    id: str
    by: str
    since: Time
    cordoned: bool
    reason: str = ""
    spent: int = 0


def describe_drain(mark: DrainMark) -> str:
    """Who drains the node, since when and why; the subject of the sentence is the person."""
    since = mark.since.isoformat(timespec="seconds").replace("+00:00", "Z")
    return plain_text(f"{mark.by} drains it since {since}" + (f" ({mark.reason})" if mark.reason else ""))


def read_drain_mark(annotations: Mapping[str, str] | None) -> DrainMark | None:
    """The mark of a Node; None if it has none, or one that cannot be read: a cordon then is nobody's."""
    text = (annotations or {}).get(DRAIN_MARK)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text.encode(), type=DrainMark)
    except (msgspec.DecodeError, UnicodeError):
        return None


def write_drain_mark(mark: DrainMark) -> str:
    """The text of the annotation."""
    return msgspec.json.encode(mark).decode()
