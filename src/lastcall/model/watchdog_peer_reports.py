"""What a node's agent says of other agents that it has heard, in its own Lease (``lastcall-nodes``), pure.

An agent that has lost the API server asks all others, by the name of its node and the id of its boot. Who still has the
server says so for it, in a second annotation, with the renewals that it makes anyway.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from lastcall import names
from lastcall.model.base import Facts

WITHIN = 60.0
"""Seconds for which one is told after it was heard."""
MOST = 64
"""So many are told at the most: those that were heard last. More are lost at once only where nothing is fenced anyway."""


class PeerReport(Facts, frozen=True):
    """That another node's agent was heard, with the question that it has asked last of those that were heard."""

    boot_id: Annotated[str, Meta(min_length=1)] = msgspec.field(name="bootID")
    asked: Annotated[int, Meta(ge=0)]
    """Which question of this boot: by the clock of who has asked it, in milliseconds. A later one has a higher number."""
    ago: Annotated[float, Meta(ge=0)]
    """Seconds from when it was heard until right before this was sent."""


_DECODER = msgspec.json.Decoder(dict[str, PeerReport])


def to_annotations(heard: Mapping[str, PeerReport], before: Mapping[str, str]) -> dict[str, str | None]:
    """The annotations that say it, by the names of the nodes, as a part of a merge patch.

    ``before`` are those that stand there: with nobody to tell of, what stood there goes.
    """
    if heard:
        latest = sorted(heard.items(), key=lambda item: (item[1].ago, item[0]))
        return {names.PEERS_HEARD: msgspec.json.encode(dict(latest[:MOST])).decode()}
    return {names.PEERS_HEARD: None} if names.PEERS_HEARD in before else {}


def parse_annotation(annotations: Mapping[str, str]) -> Mapping[str, PeerReport]:
    """What a Lease with these annotations says, by the names of the nodes; nothing if it cannot be read."""
    text = annotations.get(names.PEERS_HEARD, "")
    try:
        return dict(islice(_DECODER.decode(text).items(), MOST)) if text else {}
    except (msgspec.DecodeError, ValueError, RecursionError):
        return {}
