"""An agent's reports about other agents, in its own Lease (namespace ``lastcall-nodes``) (pure).

An agent that has lost the API server asks all others; the question names its node and its boot. An agent that still has
the API server publishes this on its behalf, in a second annotation, with the renewals that it makes anyway.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated

import msgspec
from msgspec import Meta

from lastcall import names
from lastcall.model.base import Facts

WITHIN = 60.0
"""Seconds for which a report is published after the question was received."""
MOST = 64
"""The most reports published, the newest ones. If more nodes are lost at once, the limits prevent fencing anyway."""


class PeerReport(Facts, frozen=True):
    """A question that was received from another node's agent: the latest of its boot."""

    boot_id: Annotated[str, Meta(min_length=1)] = msgspec.field(name="bootID")
    asked: Annotated[int, Meta(ge=0)]
    """The number of the question: milliseconds on the asking node's clock. A later question has a higher number."""
    ago: Annotated[float, Meta(ge=0)]
    """Seconds from the receipt of the question until just before this was sent."""


_DECODER = msgspec.json.Decoder(dict[str, PeerReport])


def to_annotations(heard: Mapping[str, PeerReport], before: Mapping[str, str]) -> dict[str, str | None]:
    """The annotations that hold the reports, by node name, as a part of a merge patch.

    ``before`` are the current annotations: without reports, an existing annotation is removed.
    """
    if heard:
        latest = sorted(heard.items(), key=lambda item: (item[1].ago, item[0]))
        return {names.PEERS_HEARD: msgspec.json.encode(dict(latest[:MOST])).decode()}
    return {names.PEERS_HEARD: None} if names.PEERS_HEARD in before else {}


def parse_annotation(annotations: Mapping[str, str]) -> Mapping[str, PeerReport]:
    """The reports in a Lease's annotations, by node name; empty if they are not readable."""
    text = annotations.get(names.PEERS_HEARD, "")
    try:
        return dict(islice(_DECODER.decode(text).items(), MOST)) if text else {}
    except (msgspec.DecodeError, ValueError, RecursionError):
        return {}
