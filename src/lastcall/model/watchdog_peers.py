"""Pets by agreement: which nodes are counted, and what an agent says of itself beforehand, in its own Lease (pure)."""

import hashlib
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from lastcall.model.base import Facts

PORT = 9468
"""UDP, on which agents ask each other if nothing else is said."""
LEAST_KEY = 32
"""Bytes of a key that they share: as many as its hash has."""


class PeerSettings(Facts, frozen=True):
    """``watchdog.peers`` of an AgentConfiguration."""

    port: Annotated[int, Meta(ge=1024, le=65535)] = PORT
    """The same on all nodes; UDP, on the node's internal address. Lower ones need a capability that the agent does without."""


class PeerTerms(Facts, frozen=True):
    """In a Promise: this agent also pets while more than half of these nodes report that the API server is lost to them."""

    nodes: str
    """The ``fingerprint`` of all nodes' names, its own among them, by which it counts."""
    calm: str
    """A word that is drawn anew with each report to others that the API server is lost, and with each life of the agent.

    So between two writes that say the same word it has reported nothing of that kind.
    """


def fingerprint(names: Iterable[str]) -> str:
    """The same for the same names alone: both sides have to count the same nodes."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:32]
