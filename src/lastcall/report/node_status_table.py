"""The rows of ``lastcall status`` as the cells of a table (pure)."""

from collections.abc import Sequence
from datetime import datetime

from lastcall.model.duration import format_seconds
from lastcall.model.shutdown import ShutdownOutcome, ShutdownState
from lastcall.report.formatting import format_age
from lastcall.report.node_status import NodeStatusRow, ShutdownSummary

UNKNOWN, NONE = "<unknown>", "<none>"
"""As kubectl has them."""

TITLES = ("NODE", "ARMED", "MODE", "REQUESTED", "GRANTED", "LAST SHUTDOWN", "KILLED")
WIDE_TITLES = (*TITLES, "AGENT", "VERSION", "REPORTED")
LAST_TITLE = "PROBLEMS"


def table_cells(row: NodeStatusRow, now: datetime, *, wide: bool = False) -> Sequence[str]:
    """The cells below ``TITLES`` or ``WIDE_TITLES``, without the problems."""
    heard = row.requested_seconds is not None
    last = row.last_shutdown
    cells = [
        row.name,
        row.armed.value,
        row.mode.value if row.mode else UNKNOWN,
        format_seconds(row.requested_seconds) if row.requested_seconds is not None else UNKNOWN,
        _granted_text(row) if heard else UNKNOWN,
        _shutdown_text(last, now) if last else NONE,
        str(len(last.killed)) if last else NONE,
    ]
    if wide:
        reported = f"{format_age((now - row.reported).total_seconds())} ago" if row.reported else NONE
        cells += [row.agent or NONE, row.version or UNKNOWN, reported]
    return cells


def problems_text(row: NodeStatusRow) -> str:
    """All problems on one line."""
    return "; ".join(row.problems) or NONE


def _granted_text(row: NodeStatusRow) -> str:
    return format_seconds(row.granted_seconds) if row.granted_seconds is not None else "unlimited"


def _shutdown_text(last: ShutdownSummary, now: datetime) -> str:
    """How it ended and when it began; while it is under way, how far it has come."""
    running = last.outcome is ShutdownOutcome.RUNNING and last.state is not ShutdownState.RETURNED
    word = last.state.value if running else last.outcome.value
    if last.start_time is None:
        return word
    return f"{word} ({format_age((now - last.start_time).total_seconds())} ago)"
