"""The lost nodes that a limit holds back, in the status of a FencePolicy (pure): written, and read back by tools.

Errors of the API server are one of these limits. The status is written again only if its content changes: other nodes,
another limit, or a reported time that has passed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from lastcall.failover.decisions import decision_table, suspicion
from lastcall.failover.decisions.case import Case
from lastcall.failover.decisions.steps import AskTarget, Mark, SwitchOff, Wait
from lastcall.failover.limits.storms import Limit, LimitAnswer

ALLOWED = "FencingAllowed"
"""The condition of a policy that is False while a limit keeps one of its lost nodes from being fenced."""
MOST = 16
"""The most nodes in one list: the object must stay small even if hundreds of nodes are lost."""
LONGEST = 1024
"""The most characters of a message about one limit."""
RENEWED = 60.0
"""Seconds after its ``notBefore`` within which a leading controller has renewed or removed an entry."""
LONGEST_OF_ALL = 32768
"""The most characters of a condition's message (meta/v1 Condition): the API server rejects a longer one."""

_ALL_NODES = frozenset({Limit.NODES_LOST, Limit.API_SERVER, Limit.CLOCK})
"""Limits that apply to every node: the controller does not trust its view."""
_FREE = LimitAnswer(allowed=True, why="no limit keeps it from being fenced")


def standing_limit(case: Case, now: float, trouble: LimitAnswer | None) -> LimitAnswer | None:
    """The limit on fencing a node: an answer that allows it if there is none; None if it is not lost, or unknown.

    ``trouble``: why no node at all is fenced now, if so. It may be newer than the case, because a failing API server
    delays the next one.
    """
    if case.policy is None or case.node is None or suspicion.wait_for_silence(case, now):
        return None
    step = decision_table.decide(case, now)
    if isinstance(step, Wait) and not case.is_boot_dead and not case.limit_answer.allowed:
        return case.limit_answer if step.limit else None
    if trouble and not case.is_boot_dead and isinstance(step, AskTarget | Mark | SwitchOff):
        return trouble
    return _FREE


def standing_limit_unread(trouble: LimitAnswer | None) -> LimitAnswer:
    """The same for a lost node about which nothing could be read yet."""
    return trouble or _FREE


@dataclass
class HeldBack:
    """The lost nodes of one policy, by the limit that holds each back."""

    lost: bool = False
    """Whether at least one node is lost, held back or not."""
    _answers: dict[Limit, LimitAnswer] = field(default_factory=dict)
    """The first answer for each limit."""
    _nodes: dict[Limit, set[str]] = field(default_factory=dict)

    def add_node(self, node: str, answer: LimitAnswer) -> None:
        """Adds a lost node with its ``standing_limit``."""
        self.lost = True
        if answer.limit:
            self._answers.setdefault(answer.limit, answer)
            self._nodes.setdefault(answer.limit, set()).add(node)

    def status_entries(self, before: Mapping[str, Any], now: float, wall: float) -> list[dict[str, Any]]:
        """The entries of ``status.heldBack``.

        ``before``: the current status. ``now``, on the answers' clock, is the moment ``wall``.
        """
        old = {entry.get("reason"): entry for entry in _readable_entries(before)}
        return [
            _status_entry(self._answers[limit], self._nodes[limit], old.get(limit.value), now, wall)
            for limit in Limit
            if limit in self._answers
        ]

    def allowed_condition(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """The condition ``FencingAllowed`` without its timestamps; ``entries`` as ``status_entries`` returns them."""
        if entries:
            message = "; ".join(map(_entry_text, entries))[:LONGEST_OF_ALL]
            return {"type": ALLOWED, "status": "False", "reason": entries[0]["reason"], "message": message}
        if self.lost:
            message = "no limit keeps a lost node from being fenced"
            return {"type": ALLOWED, "status": "True", "reason": "NoLimitReached", "message": message}
        message = "the limits were not asked: no node is lost for which this policy holds"
        return {"type": ALLOWED, "status": "Unknown", "reason": "NotAsked", "message": message}


def _status_entry(
    answer: LimitAnswer, nodes: set[str], old: Mapping[str, Any] | None, now: float, wall: float
) -> dict[str, Any]:
    assert answer.limit
    entry: dict[str, Any] = {
        "reason": answer.limit.value,
        "message": answer.cause[:LONGEST],
        "nodes": sorted(nodes)[:MOST],
        "waiting": len(nodes),
        "blockedBy": [*answer.blocked_by[:MOST]],
        "since": old["since"] if old else _format_time(wall),
    }
    ends = None if answer.not_before is None else wall + answer.not_before - now
    if ends is not None:
        entry["notBefore"] = _format_time(ends)
    return {**old} if old and _is_still_true(old, entry, ends, wall) else entry


def _is_still_true(old: Mapping[str, Any], entry: Mapping[str, Any], ends: float | None, wall: float) -> bool:
    """Whether the reported entry still holds: its ``notBefore`` is in the future, even if it is later by now.

    The message of an API server error is different each time and does not count.
    """
    told = _parse_time(old.get("notBefore"))
    if (told is None) != (ends is None) or (told is not None and ends is not None and not wall < told <= ends + 1):
        return False
    moving = {"notBefore", *({"message"} if entry["reason"] == Limit.API_SERVER.value else ())}
    return {key: old[key] for key in old if key not in moving} == {
        key: entry[key] for key in entry if key not in moving
    }


def _entry_text(entry: Mapping[str, Any]) -> str:
    waiting = _names_text(entry["nodes"], entry["waiting"])
    verb = "waits" if entry["waiting"] == 1 else "wait"
    until = f", not before {entry['notBefore']}" if "notBefore" in entry else ""
    return f"limit {entry['reason']} since {entry['since']}: {_cause_text(entry)}; {waiting} {verb}{until}"


def _cause_text(entry: Mapping[str, Any]) -> str:
    """The cause with the nodes that use up the limit, unless the message names them."""
    message, blocking = entry["message"], entry["blockedBy"]
    return (
        message if all(node in message for node in blocking) else f"{message} ({_names_text(blocking, len(blocking))})"
    )


def _names_text(names: Sequence[str], count: int) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{'node' if count == 1 else 'nodes'} {', '.join(names)}{more}"


def parse_held_back(status: Mapping[str, Any], *, node: str, now: float) -> LimitAnswer | None:
    """The answer in ``status.heldBack`` for a node at ``now``; None if there is none. Times are seconds since 1970.

    An entry whose ``notBefore`` passed ``RENEWED`` seconds ago is ignored: no controller leads that could renew it.
    """
    for entry in _readable_entries(status):
        limit, ends = Limit(entry["reason"]), _parse_time(entry.get("notBefore"))
        if ends is not None and now >= ends + RENEWED:
            continue
        if node in entry["nodes"] or limit in _ALL_NODES:
            why = f"{_cause_text(entry)}, since {entry['since']}"
            return LimitAnswer(allowed=False, why=why, again=ends, limit=limit)
    return None


def _readable_entries(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The entries that can be read."""
    entries = status.get("heldBack")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, Mapping) and entry.get("reason") in [one.value for one in Limit]:
            texts = [entry.get("message"), entry.get("since")]
            for names in (entry.get("nodes"), entry.get("blockedBy")):
                texts += names if isinstance(names, list) else [None]
            if all(isinstance(text, str) for text in texts):
                yield entry


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _parse_time(text: Any) -> float | None:
    """Seconds since 1970; None if it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None
