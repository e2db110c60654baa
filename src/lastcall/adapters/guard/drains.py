"""Commands that put members into maintenance mode, and that this process has begun (no I/O).

A node says that it is in maintenance mode as soon as that begins. That it has ended is known to whoever ran the command;
another process runs it again.
"""

from dataclasses import dataclass

RUNNING_SECONDS = 60.0
"""So long a command that was begun counts as under way; then it is run again."""

_ROOM = 1024


@dataclass(frozen=True)
class _Drain:
    begun_at: float
    is_done: bool = False


class Drains:
    """By the member's uid; times are those of the event loop, in seconds."""

    def __init__(self) -> None:
        self._known: dict[str, _Drain] = {}

    def is_done(self, uid: str) -> bool:
        """Whether the command has ended well."""
        found = self._known.get(uid)
        return found is not None and found.is_done

    def is_known(self, uid: str) -> bool:
        """Whether it was begun, and neither failed nor was undone."""
        return uid in self._known

    def is_under_way(self, uid: str, now: float) -> bool:
        """Whether it was begun in the last minute and has not ended as far as is known."""
        found = self._known.get(uid)
        return found is not None and not found.is_done and now - found.begun_at < RUNNING_SECONDS

    def record_start(self, uid: str, now: float) -> None:
        """It is begun now."""
        self._known[uid] = _Drain(now)
        if len(self._known) > _ROOM:
            del self._known[min(self._known, key=lambda one: self._known[one].begun_at)]

    def record_end(self, uid: str) -> None:
        """It has ended well."""
        if found := self._known.get(uid):
            self._known[uid] = _Drain(found.begun_at, is_done=True)

    def forget(self, uid: str) -> None:
        """It has failed, or is of no concern any more."""
        self._known.pop(uid, None)
