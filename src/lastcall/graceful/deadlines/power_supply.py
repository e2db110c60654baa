"""When a power supply says that the machine goes down (pure): the variables of NUT, as upsc(8) prints them.

NUT's own rule for a shutdown is FSD, or on battery (OB) with a low battery (LB): ``upsmon`` and ``ups.status``.
"""

from collections.abc import Mapping

from lastcall.graceful.deadlines.findings import SourceFinding, UnreadableAnswer
from lastcall.model.deadline_settings import NutSettings
from lastcall.model.duration import format_seconds
from lastcall.model.shutdown_notice import NoticeSource, ShutdownNotice


def supply_finding(variables: Mapping[str, str], settings: NutSettings, *, now: float) -> SourceFinding:
    """What the power supply says now; UnreadableAnswer without a status, or if its driver has lost it."""
    status = variables.get("ups.status", "").split()
    if not status or "WAIT" in status or not {"OL", "OB", "FSD"} & set(status):
        raise UnreadableAnswer(
            f"ups.status says nothing about the mains: {variables.get('ups.status', 'missing')[:40]!r}"
        )
    runtime = _seconds(variables.get("battery.runtime"))
    if "FSD" in status:
        return _finding("forced", now + settings.forced_shutdown_seconds, "forced shutdown (FSD)")
    if "OB" not in status:
        return SourceFinding()
    left = "" if runtime is None else f", battery for {format_seconds(runtime)}"
    if "LB" in status:
        seconds = settings.low_battery_seconds if runtime is None else runtime
        return _finding("battery", now + seconds, f"on battery, which is low{left}")
    if runtime is not None and runtime <= settings.min_runtime_seconds:
        return _finding("battery", now + runtime, f"on battery{left}")
    return SourceFinding(warning=f"on battery{left}")


def _finding(key: str, deadline: float, reason: str) -> SourceFinding:
    return SourceFinding(notice=ShutdownNotice(source=NoticeSource.NUT, key=key, deadline=deadline, reason=reason))


def _seconds(said: str | None) -> float | None:
    try:
        seconds = float(said) if said is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 <= seconds < 1e7 else None
