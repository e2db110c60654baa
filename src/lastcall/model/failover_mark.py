"""The annotation ``lastcall.dev/failover`` of a Node, as far as a drain reads it (pure): who fails the node over.

``failover.evidence.owner_mark`` has all of it.
"""

from collections.abc import Mapping

import msgspec

from lastcall.model.base import Facts
from lastcall.model.foreign_text import plain_text
from lastcall.names import FAILOVER_ANNOTATION


class FailoverMark(Facts, frozen=True):
    """The controller's identity, and when the failover began (RFC 3339); "" if it is not said."""

    by: str = ""
    began: str = ""


def describe_failover(annotations: Mapping[str, str] | None) -> str:
    """Who fails the node over, and since when; "" if nobody does."""
    text = (annotations or {}).get(FAILOVER_ANNOTATION)
    if not text:
        return ""
    try:
        mark = msgspec.json.decode(text.encode(), type=FailoverMark)
    except (msgspec.DecodeError, UnicodeError):
        mark = FailoverMark()
    who = f" {mark.by}" if mark.by else ""
    since = f" since {mark.began}" if mark.began else ""
    return plain_text(f"lastcall controller{who} fails it over{since}")
