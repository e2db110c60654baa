"""What an agent's status means to those who look at its Node."""

from collections.abc import Sequence
from datetime import UTC, datetime

from lastcall import __version__
from lastcall.graceful.agent import AgentStatus
from lastcall.graceful.state_machine import AgentState
from lastcall.model.agent_standing import LONGEST_MESSAGE, AgentStanding
from lastcall.model.foreign_text import plain_text
from lastcall.model.shutdown import ShutdownMode
from lastcall.names import KUBELET_LOCK_WHO
from lastcall.ports.node import Inhibitor


def agent_standing(
    status: AgentStatus | None,
    *,
    observes: bool,
    boot_id: str,
    pod_uid: str,
    kubelet_lock: bool,
    lost_identities: Sequence[str],
    wall: float,
) -> AgentStanding | None:
    """The standing at ``wall`` (seconds since 1970); None while a shutdown is under way, or before the first round."""
    if status is None or status.state in (AgentState.ENDING, AgentState.RELEASED):
        return None
    limited = status.granted is not None and status.granted != float("inf")
    return AgentStanding(
        armed=status.armed,
        mode=ShutdownMode.OBSERVE if observes else ShutdownMode.ENFORCE,
        message=plain_text(status.sentence)[:LONGEST_MESSAGE],
        requested_seconds=status.requested,
        granted_seconds=status.granted if limited else None,
        boot_id=boot_id,
        version=__version__,
        reported=datetime.fromtimestamp(int(wall), UTC),
        kubelet_lock=kubelet_lock,
        lost_identities=tuple(sorted(lost_identities)),
        pod_uid=pod_uid,
    )


def is_kubelet_lock(lock: Inhibitor) -> bool:
    """Whether a lock is one by which the kubelet delays a shutdown, to end the pods itself."""
    return lock.who == KUBELET_LOCK_WHO and lock.mode == "delay" and "shutdown" in lock.what.split(":")
