"""What a restarted agent makes of the journal that it finds (pure)."""

from enum import Enum

from lastcall.model.shutdown import Outcome, Shutdown


class Past(Enum):
    """What the newest journal means now."""

    NOTHING = "there is none, or it is closed"
    GO_ON = "this shutdown is under way: go on with the time that is left"
    LEAVE = "the lock was released already: the machine is going down"
    CANCELLED = "the shutdown was cancelled while nobody looked: be a ready node again"
    EARLIER_BOOT = "the machine went down with it; it is history"


def past(record: Shutdown | None, *, boot_id: str, preparing: bool) -> Past:
    """What to do about the newest journal.

    It is resumed only in the boot that wrote it and while logind says that the shutdown is under way: anything else
    would end the pods of a machine that stays up.
    """
    if record is None:
        return Past.NOTHING
    if record.boot_id != boot_id:
        return Past.EARLIER_BOOT
    if record.outcome in (Outcome.CANCELLED, Outcome.INTERRUPTED):
        return Past.NOTHING
    if not preparing:
        return Past.CANCELLED
    return Past.GO_ON if record.released is None else Past.LEAVE
