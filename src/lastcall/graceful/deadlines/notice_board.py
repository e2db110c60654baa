"""The notices that hold now, one for each source at most (pure: time is an argument).

A notice begins the shutdown ``lead`` seconds before its deadline. It holds until its source withdraws it, and at most
EXPIRE_SECONDS after its deadline: a machine that is still up then stays up, and its kubelet has to come back.
"""

from collections.abc import Iterable

from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice

EXPIRE_SECONDS = 60.0
"""As long as the kubelet stays stopped after the deadline of a shutdown (``adapters.systemd.kubelet_service``)."""

SAME_SECONDS = 1.0
"""A smaller change of a deadline is no news: it is computed anew from each answer."""


class NoticeBoard:
    """The notices of all sources."""

    def __init__(self, notices: Iterable[ShutdownNotice] = ()) -> None:
        self._notices = {notice.source: notice for notice in notices}
        self._expired: dict[NoticeSource, str] = {}

    def put(self, notice: ShutdownNotice, now: float, *, replace: bool = False) -> bool:
        """Adds a notice; returns whether that changes anything.

        A source that repeats a notice can only bring its deadline forward, since pods end by it already; ``replace``
        takes a later one too. A notice that has expired is not news until its source has withdrawn it.
        """
        if self._expired.get(notice.source) == notice.key or notice.deadline + EXPIRE_SECONDS <= now:
            return False
        known = self._notices.get(notice.source)
        if known and not replace and notice.deadline > known.deadline - SAME_SECONDS:
            return False
        self._notices[notice.source] = notice
        return True

    def withdraw(self, source: NoticeSource) -> ShutdownNotice | None:
        """Removes the source's notice and returns it."""
        self._expired.pop(source, None)
        return self._notices.pop(source, None)

    def drop_expired(self, now: float) -> list[ShutdownNotice]:
        """Removes the notices whose machine is still up long after their deadline, and returns them."""
        over = [one for one in self._notices.values() if one.deadline + EXPIRE_SECONDS <= now]
        for notice in over:
            del self._notices[notice.source]
            self._expired[notice.source] = notice.key
        return over

    def all_notices(self) -> tuple[ShutdownNotice, ...]:
        """All notices, the earliest deadline first."""
        return tuple(sorted(self._notices.values(), key=lambda one: (one.deadline, one.source.value)))

    def due_notices(self, now: float, lead: float) -> tuple[ShutdownNotice, ...]:
        """The notices whose shutdown has to be under way, the earliest deadline first."""
        return tuple(one for one in self.all_notices() if one.deadline - lead <= now)

    def next_moment(self, now: float, lead: float) -> float | None:
        """When one of the answers above changes by itself; None if never."""
        moments = [at for one in self._notices.values() for at in (one.deadline - lead, one.deadline + EXPIRE_SECONDS)]
        return min((at for at in moments if at > now), default=None)
