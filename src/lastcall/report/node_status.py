"""How each node stands: whether its agent is armed, its last shutdown, and what an administrator should mend (pure).

What the API server cannot prove is Unknown: an agent that reported to be armed and is not heard of any more may be dead.
"""

from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from lastcall import names
from lastcall.model.agent_standing import AgentStanding, is_silent, read_standing
from lastcall.model.base import Facts, Time
from lastcall.model.duration import format_seconds
from lastcall.model.node_shutdown_object import HANDED_OVER
from lastcall.model.node_standing_facts import NodeStandingFacts, RecordedShutdown, StandingNode
from lastcall.model.shutdown import PodOutcome, ShutdownMode, ShutdownOutcome, ShutdownState
from lastcall.model.shutdown_node import read_mark
from lastcall.report.formatting import abbreviate_names, count_text

LATE_SECONDS = 60.0
"""Seconds after its deadline from which a shutdown that is still running has an incomplete record."""


class ArmedState(Enum):
    """Whether a shutdown of the machine would wait for the pods; the words are those of conditions."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ShutdownSummary(Facts, frozen=True):
    """A node's last shutdown. ``killed`` are the pods that needed SIGKILL, also those that it did not end in time."""

    start_time: Time | None
    state: ShutdownState
    outcome: ShutdownOutcome
    mode: ShutdownMode
    pods_ended: str
    killed: tuple[str, ...] = ()
    cut_short: tuple[str, ...] = ()
    handed_over: tuple[str, ...] = ()


class NodeStatusRow(Facts, frozen=True):
    """One node in ``lastcall status``; the JSON of ``-o json``, which is a stable contract.

    ``mode``, the seconds and ``version`` are what its agent last reported, and None while it is not heard of.
    ``granted_seconds`` is None also if logind sets no limit. ``reason`` is why it is not armed, or why that is not known.
    """

    name: str
    armed: ArmedState
    reason: str = ""
    mode: ShutdownMode | None = None
    requested_seconds: float | None = None
    granted_seconds: float | None = None
    version: str = ""
    agent: str = ""
    reported: Time | None = None
    last_shutdown: ShutdownSummary | None = None
    problems: tuple[str, ...] = ()


class _Verdict(NamedTuple):
    """``heard`` is the agent's word if it counts now; ``reason`` is empty if it is armed."""

    armed: ArmedState
    reason: str
    heard: AgentStanding | None = None


def node_status(facts: NodeStandingFacts, now: datetime) -> NodeStatusRow:
    """The row of one node at ``now``, by the reader's clock."""
    verdict = _judge_agent(facts, now)
    heard, said = verdict.heard, read_standing(facts.node.metadata.annotations)
    return NodeStatusRow(
        name=facts.node.metadata.name,
        armed=verdict.armed,
        reason=verdict.reason,
        mode=heard.mode if heard else None,
        requested_seconds=heard.requested_seconds if heard else None,
        granted_seconds=heard.granted_seconds if heard else None,
        version=heard.version if heard else "",
        agent=_agent_name(facts, said),
        reported=said.reported if said else None,
        last_shutdown=_summarise(facts.shutdown) if facts.shutdown else None,
        problems=tuple(_problems(facts, verdict, now)),
    )


def _agent_name(facts: NodeStandingFacts, said: AgentStanding | None) -> str:
    """The agent's pod, "" if it is not in one or not known."""
    pods = {pod.metadata.uid: pod.metadata.name for pod in facts.agents or ()}
    return pods.get(said.pod_uid, "") if said else next(iter(pods.values()), "")


def _judge_agent(facts: NodeStandingFacts, now: datetime) -> _Verdict:
    standing = read_standing(facts.node.metadata.annotations)
    if standing is None:
        return _Verdict(ArmedState.UNKNOWN, _unreported_reason(facts))
    if reason := _doubt(facts, standing, now):
        return _Verdict(ArmedState.UNKNOWN, reason)
    if not standing.armed:
        return _Verdict(ArmedState.FALSE, standing.message, standing)
    return _Verdict(ArmedState.TRUE, "", standing)


def _unreported_reason(facts: NodeStandingFacts) -> str:
    if facts.agents is None:
        return "no agent has reported, and agents' pods may not be read"
    if not facts.agents:
        return "no agent is known: there is neither a pod nor a report of one"
    ready = next((pod for pod in facts.agents if pod.is_ready), None)
    if ready:
        return f"its agent {ready.metadata.name} does not report: it is older, or may not write its Node"
    return f"its agent {facts.agents[0].metadata.name} is not ready"


def _doubt(facts: NodeStandingFacts, standing: AgentStanding, now: datetime) -> str:
    """Why the agent's last word may not hold any more; "" if it does."""
    boot = facts.node.status.node_info.boot_id
    ready = facts.node.find_condition(names.READY)
    if boot and standing.boot_id != boot:
        return "its agent has not reported since the boot"
    if facts.shutdown and _has_gone_down(facts.shutdown, standing):
        return "the node shuts down" if _is_under_way(facts.shutdown) else "the node has shut down"
    if ready is None or ready.status == "Unknown":
        return "the node does not answer"
    if is_silent(standing, now):
        seconds = (now - standing.reported).total_seconds()
        when = f"{format_seconds(int(seconds))} ago" if seconds > 0 else "in the future: its clock differs"
        return f"its agent last reported {when}"
    return _pod_doubt(facts, standing) if ready.status == "True" else ""


def _has_gone_down(shutdown: RecordedShutdown, standing: AgentStanding) -> bool:
    """Whether the agent has written nothing since a shutdown of its boot began, which was not cancelled.

    It writes nothing during one, and its lock is released at the end.
    """
    over = shutdown.status.state in (ShutdownState.CANCELLED, ShutdownState.RETURNED)
    began = shutdown.status.start_time
    same = shutdown.spec.boot_id == standing.boot_id
    return same and not over and began is not None and standing.reported <= began


def _is_under_way(shutdown: RecordedShutdown) -> bool:
    return shutdown.status.state in (ShutdownState.ANNOUNCED, ShutdownState.ENDING)


def _pod_doubt(facts: NodeStandingFacts, standing: AgentStanding) -> str:
    """What the agent's pod says of it. Only a node that is ready speaks for its pods' readiness."""
    if not standing.pod_uid or facts.agents is None:
        return ""
    pod = next((one for one in facts.agents if one.metadata.uid == standing.pod_uid), None)
    if pod is None:
        return "its agent's pod is gone"
    return f"its agent {pod.metadata.name} is not ready" if standing.armed and not pod.is_ready else ""


def _summarise(shutdown: RecordedShutdown) -> ShutdownSummary:
    status = shutdown.status
    killed = [pod.key for pod in status.pods if pod.outcome in (PodOutcome.KILLED, PodOutcome.UNCONFIRMED)]
    notes = [note.message for note in status.notes if note.message.startswith(HANDED_OVER)]
    return ShutdownSummary(
        start_time=status.start_time,
        state=status.state,
        outcome=status.outcome,
        mode=shutdown.spec.mode,
        pods_ended=status.pods_ended,
        killed=tuple(killed),
        cut_short=tuple(pod.key for pod in status.pods if pod.cut_short),
        handed_over=tuple(notes[-1].removeprefix(f"{HANDED_OVER}: ").split(", ")) if notes else (),
    )


def _problems(facts: NodeStandingFacts, verdict: _Verdict, now: datetime) -> Iterator[str]:
    """One short sentence each, the worst first."""
    if verdict.reason:
        yield verdict.reason
    if verdict.heard:
        yield from _agent_problems(verdict.heard)
    yield from _node_problems(facts.node)
    if facts.shutdown:
        yield from _record_problems(facts.node, facts.shutdown, now)


def _agent_problems(standing: AgentStanding) -> Iterator[str]:
    granted = standing.granted_seconds
    if granted is not None and granted < standing.requested_seconds:
        yield f"logind grants {format_seconds(granted)} of {format_seconds(standing.requested_seconds)}"
    if standing.kubelet_lock:
        yield "the kubelet holds a delay lock: it ends the pods, too"
    if standing.lost_identities:
        yield f"its identity for the API server does not suffice: {', '.join(standing.lost_identities)}"


def _node_problems(node: StandingNode) -> Iterator[str]:
    mark = read_mark(node.metadata.annotations)
    if mark and node.spec.unschedulable and not _is_going_down(node):
        yield "cordoned by a shutdown" if mark.cordoned else "cordoned, and marked by a shutdown"
    if names.WARNING_CORDON in (node.metadata.annotations or {}):
        yield "cordoned, since a source of deadlines warns"
    for kind, text in _CONDITIONS.items():
        condition = node.find_condition(kind)
        if condition and condition.status == "True":
            yield f"{text}: {condition.message}"


_CONDITIONS = {
    names.SOURCES_FAIL: "a source of deadlines does not answer",
    names.INTERRUPTION_LIKELY: "an interruption is likely",
}


def _is_going_down(node: StandingNode) -> bool:
    condition = node.find_condition(names.SHUTDOWN_IN_PROGRESS)
    return condition is not None and condition.status == "True"


def _record_problems(node: StandingNode, shutdown: RecordedShutdown, now: datetime) -> Iterator[str]:
    status, ready = shutdown.status, node.find_condition(names.READY)
    is_up = ready is not None and ready.status == "True"
    another_boot = node.status.node_info.boot_id not in ("", shutdown.spec.boot_id)
    if is_up and another_boot and status.returned_time is None and status.outcome is not ShutdownOutcome.CANCELLED:
        yield "the record of its last shutdown is incomplete: its return is missing"
    elif is_up and not another_boot and status.outcome is ShutdownOutcome.RUNNING and _is_late(shutdown, now):
        yield "the record of its last shutdown is incomplete: its end is missing"
    handed_over = _summarise(shutdown).handed_over
    if handed_over and not another_boot:
        yield f"{count_text(len(handed_over), 'pod')} handed over to the kubelet: {abbreviate_names(handed_over)}"


def _is_late(shutdown: RecordedShutdown, now: datetime) -> bool:
    deadline = shutdown.status.deadline_time
    return deadline is not None and (now - deadline).total_seconds() > LATE_SECONDS
