"""How long logind lets a delay lock hold up a shutdown (InhibitDelayMaxSec), and which file decides it. Pure.

systemd reads the drop-ins of all directories in the order of their file names, and the last one wins: one that is
named like a word beats the kubelet's ``99-kubelet.conf``.
"""

from collections.abc import Sequence

from lastcall.model import timespan
from lastcall.names import LOGIND_DROP_IN
from lastcall.ports import DropIn

DEFAULT_SECONDS = 5.0
"""What logind grants if no file says otherwise (logind.conf(5))."""

_ROUNDING = 1e-6
"""logind counts in microseconds."""


def needed(requested: float, granted: float) -> bool:
    """Whether logind grants less than is asked for."""
    return granted + _ROUNDING < requested


def effective(settings: Sequence[DropIn]) -> float:
    """What the files grant: the last of them wins. Each value is a time span."""
    return timespan.parse(settings[-1].value) if settings else DEFAULT_SECONDS


def rival(settings: Sequence[DropIn], ours: str = LOGIND_DROP_IN) -> DropIn | None:
    """The setting that wins over ours although ours is there; None if ours wins or is missing.

    ``ours`` is the file's name.
    """
    if any(_name(setting) == ours for setting in settings) and _name(settings[-1]) != ours:
        return settings[-1]
    return None


def explain(settings: Sequence[DropIn], requested: float, granted: float, *, ours: str = LOGIND_DROP_IN) -> str:
    """Why the limit is what it is: the file and its value, and what to do if it is too low. One sentence.

    ``settings`` is what the files say now, ``granted`` what logind itself says; it may not have read them yet.
    """
    why, remedy = diagnose(settings, requested, granted, ours=ours)
    return f"{why}: {remedy}" if remedy else why


def foretell(settings: Sequence[DropIn], requested: float, *, ours: str = LOGIND_DROP_IN) -> str:
    """What becomes of a limit that is enough now when logind reads its files again; "" if it stays enough. One sentence."""
    if not needed(requested, effective(settings)):
        return ""
    why = _says(settings[-1]) if settings else "no file sets InhibitDelayMaxSec any more"
    remedy = _remedy(settings[-1], ours) if rival(settings, ours) else f"let lastcall write {ours} again"
    short = f"logind will grant {timespan.text(effective(settings))} of the {timespan.text(requested)} asked for"
    return f"{short} when it reads its files again, since {why}: {remedy}"


def diagnose(
    settings: Sequence[DropIn], requested: float, granted: float, *, ours: str = LOGIND_DROP_IN
) -> tuple[str, str]:
    """The same in two parts: why the limit is what it is, and the remedy, which is "" if enough is granted."""
    grants = f"logind grants {timespan.text(granted)}"
    if not needed(requested, granted):
        return f"{grants}, {_origin(settings, granted)}", ""
    short = f"{grants} of the {timespan.text(requested)} asked for"
    if not needed(requested, effective(settings)):
        return (
            f"{short}: {_says(settings[-1])}, but logind has not taken it up",
            "have it read its files again (systemctl kill --signal=HUP systemd-logind.service)",
        )
    winner = rival(settings, ours)
    if winner:
        return f"{short}: {_says(winner)} and is read after {ours}", _remedy(winner, ours)
    if settings and _name(settings[-1]) != ours:
        return f"{short}: {_says(settings[-1])}, and there is no {ours} to raise it", _remedy(settings[-1], ours)
    if settings:
        return f"{short}: {_says(settings[-1])}, which was written for less", "let lastcall write it again"
    return (
        f"{short}, its default, since no file sets InhibitDelayMaxSec",
        f"let lastcall write {ours}, or set it yourself",
    )


def _name(setting: DropIn) -> str:
    return setting.path.rpartition("/")[2]


def _says(setting: DropIn) -> str:
    return f"{setting.path} says InhibitDelayMaxSec={setting.value}"


def _origin(settings: Sequence[DropIn], granted: float) -> str:
    if abs(effective(settings) - granted) > _ROUNDING:
        return "which is not what its files say now"
    return f"as {_says(settings[-1])}" if settings else "its default"


def _remedy(setting: DropIn, ours: str) -> str:
    """Files of a package come back with its next update: they are hidden by a file of the same name in /etc.

    Not by a symbolic link to /dev/null, at which some versions of systemd fail and fall back to the default.
    """
    if setting.path.startswith(("/usr/", "/run/")):
        return f"make an empty file /etc/systemd/logind.conf.d/{_name(setting)}, which hides it"
    if _name(setting) == "logind.conf":
        return f"raise it there, or let lastcall write {ours}"
    return f"remove the line there, or give the file a name that sorts before {ours}"
