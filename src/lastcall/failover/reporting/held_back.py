"""What the status of a FencePolicy says of lost nodes that a limit keeps from being fenced (pure), and how it is read again.

Errors of the API server are one of these limits. The status is written anew only if something else is in it: other nodes,
another limit, or a time that was told and has passed.
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
"""The condition of a policy: False while a limit keeps one of its lost nodes from being fenced."""
MOST = 16
"""Nodes that are named in one list: an object must stay small, also if hundreds of nodes are lost."""
LONGEST = 1024
"""Characters of a message about one limit."""
RENEWED = 60.0
"""Seconds after its ``notBefore`` within which the controller that leads has renewed or removed an entry."""
LONGEST_OF_ALL = 32768
"""Characters of the message of a condition (meta/v1 Condition): the API server refuses a status with a longer one."""

_ALL_NODES = frozenset({Limit.NODES_LOST, Limit.API_SERVER, Limit.CLOCK})
"""They stand against every node: the controller does not trust what it sees."""
_FREE = LimitAnswer(allowed=True, why="no limit keeps it from being fenced")


def standing_limit(case: Case, now: float, trouble: LimitAnswer | None) -> LimitAnswer | None:
    """What stands against fencing a node: an answer that allows it if nothing does; None if it is not lost, or not yet known.

    ``trouble``: why no node at all is fenced now, if that is so. The case may be older than that, since an API server that
    fails delays the next one.
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
    """The same of a lost node about which nothing could be read yet."""
    return trouble or _FREE


@dataclass
class HeldBack:
    """The lost nodes of one policy, by the limit that stands against each."""

    lost: bool = False
    """Whether there is one, held back or not."""
    _answers: dict[Limit, LimitAnswer] = field(default_factory=dict)
    """The first one of each limit."""
    _nodes: dict[Limit, set[str]] = field(default_factory=dict)

    def add_node(self, node: str, answer: LimitAnswer) -> None:
        """One more, and what ``standing_limit`` says of it."""
        self.lost = True
        if answer.limit:
            self._answers.setdefault(answer.limit, answer)
            self._nodes.setdefault(answer.limit, set()).add(node)

    def status_entries(self, before: Mapping[str, Any], now: float, wall: float) -> list[dict[str, Any]]:
        """``status.heldBack``. ``before``: the status as it is. ``now``, on the clock of the answers, is the moment ``wall``."""
        old = {entry.get("reason"): entry for entry in _readable_entries(before)}
        return [
            _status_entry(self._answers[limit], self._nodes[limit], old.get(limit.value), now, wall)
            for limit in Limit
            if limit in self._answers
        ]

    def allowed_condition(self, entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        """``FencingAllowed``, without the fields that say since when; ``status_entries`` as above."""
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
    """Whether what was told holds: it ends not before a time that has not come yet, though that may be later by now.

    Errors of the API server differ with each of them.
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
    """With the nodes that fill the limit, unless the message names them."""
    message, blocking = entry["message"], entry["blockedBy"]
    return (
        message if all(node in message for node in blocking) else f"{message} ({_names_text(blocking, len(blocking))})"
    )


def _names_text(names: Sequence[str], count: int) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return f"{'node' if count == 1 else 'nodes'} {', '.join(names)}{more}"


def parse_held_back(status: Mapping[str, Any], *, node: str, now: float) -> LimitAnswer | None:
    """What ``status.heldBack`` says of a node at ``now``; None if it says nothing. Times are seconds since 1970.

    An entry whose ``notBefore`` is over for ``RENEWED`` says nothing any more: no controller leads that could renew it.
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
    """Since 1970; None if it is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None
