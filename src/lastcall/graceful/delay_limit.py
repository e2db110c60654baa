"""How long logind lets a delay lock hold up a shutdown (InhibitDelayMaxSec), and which file decides it (pure).

systemd reads the drop-ins of all directories in the order of their file names, and the last one wins: a file whose name
begins with a letter therefore overrides the kubelet's ``99-kubelet.conf``.
"""

from collections.abc import Sequence

from lastcall.model import timespan
from lastcall.names import LOGIND_DROP_IN
from lastcall.ports.node import DropIn

DEFAULT_SECONDS = 5.0
"""logind's limit if no file sets one (logind.conf(5))."""

_ROUNDING = 1e-6
"""logind counts in microseconds."""


def grants_too_little(requested: float, granted: float) -> bool:
    """Whether logind grants less than requested."""
    return granted + _ROUNDING < requested


def effective_seconds(settings: Sequence[DropIn]) -> float:
    """The limit that the files set: the last one wins. Each value is a time span (systemd.time(7))."""
    return timespan.parse(settings[-1].value) if settings else DEFAULT_SECONDS


def overriding_drop_in(settings: Sequence[DropIn], ours: str = LOGIND_DROP_IN) -> DropIn | None:
    """The setting that overrides ours although our file exists; None if ours wins or is missing.

    ``ours`` is the name of our file.
    """
    if any(_file_name(setting) == ours for setting in settings) and _file_name(settings[-1]) != ours:
        return settings[-1]
    return None


def explain_limit(settings: Sequence[DropIn], requested: float, granted: float, *, ours: str = LOGIND_DROP_IN) -> str:
    """Explains the limit in one sentence: the file, its value, and the remedy if the limit is too low.

    ``settings`` are the files' current settings. ``granted`` is logind's own answer, which may predate them.
    """
    why, remedy = diagnose_limit(settings, requested, granted, ours=ours)
    return f"{why}: {remedy}" if remedy else why


def explain_limit_after_reload(settings: Sequence[DropIn], requested: float, *, ours: str = LOGIND_DROP_IN) -> str:
    """How a limit that suffices now shrinks at logind's next reload, in one sentence; "" if it still suffices then."""
    if not grants_too_little(requested, effective_seconds(settings)):
        return ""
    why = _setting_text(settings[-1]) if settings else "no file sets InhibitDelayMaxSec any more"
    remedy = (
        _remedy_for(settings[-1], ours) if overriding_drop_in(settings, ours) else f"let lastcall write {ours} again"
    )
    short = f"logind will grant {timespan.format_timespan(effective_seconds(settings))} of the {timespan.format_timespan(requested)} asked for"
    return f"{short} when it reads its files again, since {why}: {remedy}"


def diagnose_limit(
    settings: Sequence[DropIn], requested: float, granted: float, *, ours: str = LOGIND_DROP_IN
) -> tuple[str, str]:
    """``explain_limit`` in two parts: why the limit is what it is, and the remedy ("" if enough is granted)."""
    grants = f"logind grants {timespan.format_timespan(granted)}"
    if not grants_too_little(requested, granted):
        return f"{grants}, {_limit_origin(settings, granted)}", ""
    short = f"{grants} of the {timespan.format_timespan(requested)} asked for"
    if not grants_too_little(requested, effective_seconds(settings)):
        return (
            f"{short}: {_setting_text(settings[-1])}, but logind has not applied it",
            "have logind reload its files (systemctl kill --signal=HUP systemd-logind.service)",
        )
    winner = overriding_drop_in(settings, ours)
    if winner:
        return f"{short}: {_setting_text(winner)} and is read after {ours}", _remedy_for(winner, ours)
    if settings and _file_name(settings[-1]) != ours:
        return f"{short}: {_setting_text(settings[-1])}, and there is no {ours} to raise it", _remedy_for(
            settings[-1], ours
        )
    if settings:
        return (
            f"{short}: {_setting_text(settings[-1])}, which was written for a smaller value",
            "let lastcall write it again",
        )
    return (
        f"{short}, its default, since no file sets InhibitDelayMaxSec",
        f"let lastcall write {ours}, or set it yourself",
    )


def _file_name(setting: DropIn) -> str:
    return setting.path.rpartition("/")[2]


def _setting_text(setting: DropIn) -> str:
    return f"{setting.path} says InhibitDelayMaxSec={setting.value}"


def _limit_origin(settings: Sequence[DropIn], granted: float) -> str:
    if abs(effective_seconds(settings) - granted) > _ROUNDING:
        return "which is not what its files say now"
    return f"as {_setting_text(settings[-1])}" if settings else "its default"


def _remedy_for(setting: DropIn, ours: str) -> str:
    """The remedy for one file. Updates restore a package's files, so a file of the same name in /etc must hide them.

    An empty file, not a symbolic link to /dev/null: some versions of systemd fail on the link and use the default.
    """
    if setting.path.startswith(("/usr/", "/run/")):
        return f"make an empty file /etc/systemd/logind.conf.d/{_file_name(setting)}, which hides it"
    if _file_name(setting) == "logind.conf":
        return f"raise it there, or let lastcall write {ours}"
    return f"remove the line there, or give the file a name that sorts before {ours}"
