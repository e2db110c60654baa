"""Pets by agreement: the nodes that are counted, and what an agent announces in its own Lease beforehand (pure)."""

import hashlib
from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from lastcall.model.base import Facts

PORT = 9468
"""The default UDP port for questions between agents."""
LEAST_KEY = 32
"""The least bytes of a shared key: the size of its hash."""


class PeerSettings(Facts, frozen=True):
    """``watchdog.peers`` of an AgentConfiguration."""

    port: Annotated[int, Meta(ge=1024, le=65535)] = PORT
    """The same UDP port on all nodes, at the internal address. Ports below 1024 need a capability that we avoid."""


class PeerTerms(Facts, frozen=True):
    """In a promise: this agent also pets while more than half of these nodes report losing the API server."""

    nodes: str
    """The ``fingerprint`` of the names of all nodes that it counts, its own among them."""
    calm: str
    """A token drawn anew with each report of losing the API server to peers, and at each start of the agent.

    Two writes with the same token therefore prove that the agent made no such report in between.
    """


def fingerprint(names: Iterable[str]) -> str:
    """A hash of the set of names, to verify that both sides count the same nodes."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:32]
