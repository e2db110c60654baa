"""What an agent says of itself on its Node, in the annotation ``lastcall.dev/agent`` (pure)."""

from collections.abc import Mapping
from datetime import datetime

import msgspec
from msgspec import field, structs

from lastcall import names
from lastcall.model.base import Facts, Time
from lastcall.model.shutdown import ShutdownMode

RENEW_SECONDS = 300.0
"""Seconds between two writes of an unchanged standing: as often as kubelets report an unchanged Node
(nodeStatusReportFrequency)."""

LEAST_SECONDS = 30.0
"""The least seconds between two writes, so that a lock that comes and goes does not write without end."""

SILENT_SECONDS = 3 * RENEW_SECONDS
"""An agent that has written nothing for so long has not been heard of: it is dead, or cannot reach the API server."""

LONGEST_MESSAGE = 512


class AgentStanding(Facts, frozen=True):
    """Whether an agent would handle a shutdown of its machine now, and how much time there would be.

    ``granted_seconds`` is logind's limit; None if that is unlimited or not known. ``message`` is the agent's status in a
    sentence. ``kubelet_lock``: the kubelet holds a delay lock of its own, so that it ends the pods too.
    ``lost_identities`` are the identities for the API server that do not suffice. ``pod_uid`` is the agent's own pod,
    "" outside one. ``reported`` is when this was written.
    """

    armed: bool
    mode: ShutdownMode
    message: str
    requested_seconds: float
    boot_id: str = field(name="bootID")
    version: str
    reported: Time
    granted_seconds: float | None = None
    kubelet_lock: bool = False
    lost_identities: tuple[str, ...] = ()
    pod_uid: str = field(name="podUID", default="")

    def says_the_same_as(self, other: "AgentStanding") -> bool:
        """Whether only the time of the report differs."""
        return structs.replace(self, reported=other.reported) == other


def is_write_due(standing: AgentStanding, written: AgentStanding | None, seconds: float) -> bool:
    """Whether a standing has to be written, ``seconds`` after ``written`` was; None if nothing was written yet."""
    if written is None:
        return True
    return seconds >= (RENEW_SECONDS if standing.says_the_same_as(written) else LEAST_SECONDS)


def standing_annotations(standing: AgentStanding | None) -> dict[str, str | None]:
    """The annotation; None removes it."""
    return {names.AGENT_STANDING: None if standing is None else msgspec.json.encode(standing).decode()}


def read_standing(annotations: Mapping[str, str] | None) -> AgentStanding | None:
    """The standing on a Node with these annotations; None if there is none that can be read."""
    text = (annotations or {}).get(names.AGENT_STANDING)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text.encode(), type=AgentStanding)
    except (msgspec.DecodeError, UnicodeError):
        return None


def is_silent(standing: AgentStanding, now: datetime) -> bool:
    """Whether its agent has not been heard of lately, or its clock differs so much that this is not known."""
    return abs((now - standing.reported).total_seconds()) > SILENT_SECONDS
