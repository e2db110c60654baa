"""How a shutdown under way changes when another source announces it, or withdraws its notice (pure)."""

from collections.abc import Iterable, Iterator, Mapping

from lastcall.graceful.deadlines.notice_board import SAME_SECONDS
from lastcall.model.shutdown import JournalEvent, NoticeReceived, NoticeWithdrawn, ShutdownRecord
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice


def notice_changes(
    known: Mapping[NoticeSource, float], notices: Iterable[ShutdownNotice], now: float
) -> Iterator[JournalEvent]:
    """The events that lead from the ``known`` deadlines, by source, to ``notices``."""
    held = {notice.source: notice for notice in notices}
    for source in known:
        if source not in held:
            yield NoticeWithdrawn(at=now, source=source)
    for source, notice in held.items():
        if source not in known or abs(notice.deadline - known[source]) >= SAME_SECONDS:
            yield NoticeReceived(
                at=now, source=source, key=notice.key, deadline=round(notice.deadline, 3), reason=notice.reason
            )


def recorded_notices(record: ShutdownRecord) -> tuple[ShutdownNotice, ...]:
    """The notices that held when the record's last event was written."""
    return tuple(
        ShutdownNotice(source=one.source, key=one.key, deadline=record.boottime + one.deadline, reason=one.reason)
        for one in record.notices
        if not one.withdrawn
    )
