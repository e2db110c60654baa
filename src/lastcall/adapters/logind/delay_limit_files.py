"""The files from which systemd-logind takes InhibitDelayMaxSec (logind.conf(5)), as ``ports.DelayLimitFiles``."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from lastcall import names
from lastcall.adapters.state.directory import replace_file
from lastcall.errors import NotPermitted
from lastcall.model import timespan
from lastcall.ports.node import DropIn

_DIRECTORIES = ("etc/systemd", "run/systemd", "usr/local/lib/systemd", "usr/lib/systemd")
"""A file in an earlier one hides its namesakes in the later ones."""

_LOOK_SECONDS = 1.0
"""Between two looks whether a file has changed."""

_Look = tuple[tuple[Path, tuple[int, ...]], ...]

_KEY = "InhibitDelayMaxSec"


class LogindConf:
    """``root`` is the directory that logind takes for /; another one than that only for a private logind."""

    def __init__(self, root: Path = Path("/"), *, name: str = names.LOGIND_DROP_IN) -> None:
        self._root = root
        self._ours = root / "etc/systemd/logind.conf.d" / name
        self._known: _Look | None = None

    def write_limit(self, seconds: int) -> bool:
        """Makes our drop-in grant so much; False, and nothing is written, if it says so or the files grant it already.

        Nobody's limit is lowered: ours, which wins, takes over a higher one. (But not ``infinity``, with which logind
        of systemd 252 cannot power off.) It takes effect when logind reads its files again. NotPermitted names the
        path. Blocks for the disk.
        """
        settings = self.list_drop_ins()
        if settings and timespan.parse(settings[-1].value) >= seconds:
            return False
        values = [timespan.parse(setting.value) for setting in settings]
        highest = max([seconds, *(math.ceil(value) for value in values if math.isfinite(value))])
        if _read_limit(self._ours) == str(highest):
            return False
        try:
            self._ours.parent.mkdir(mode=0o755, exist_ok=True)
            replace_file(self._ours, _drop_in_text(highest).encode(), mode=0o644)
        except OSError as error:
            raise NotPermitted(f"{self._ours} cannot be written: {error.strerror or error}") from error
        if self._known is not None:
            self._known = self._file_states()
        return True

    def list_drop_ins(self) -> Sequence[DropIn]:
        """Every file that sets the limit in the order in which systemd reads them: the last one wins.

        Paths are as logind sees them, below its root. Values that logind passes over (empty ones, and what is no time span) are left out. Files that cannot be read
        count as empty, as they do for logind.
        """
        found: list[DropIn] = []
        for path in self._config_files():
            value = _read_limit(path)
            if value:
                found.append(DropIn(path=f"/{path.relative_to(self._root)}", value=value))
        return found

    async def wait_for_change(self) -> None:
        """Looks at the files each second, for some 0.1 ms: at their times and sizes, not at what is in them.

        What ``write_limit`` changes does not count.
        """
        if self._known is None:
            self._known = self._file_states()
        while (now := self._file_states()) == self._known:  # noqa: ASYNC110  (the file system wakes nobody)
            await asyncio.sleep(_LOOK_SECONDS)
        self._known = now

    def _file_states(self) -> "_Look":
        return tuple((path, _file_state(path)) for path in self._config_files())

    def _config_files(self) -> Iterator[Path]:
        """The first main file there is (before systemd 256 only the one in /etc counts), then the drop-ins by name."""
        mains = [self._root / directory / "logind.conf" for directory in _DIRECTORIES]
        yield from [path for path in mains if path.exists()][:1]
        drop_ins: dict[str, Path] = {}
        for directory in reversed(_DIRECTORIES):
            drop_ins.update({path.name: path for path in (self._root / directory / "logind.conf.d").glob("*.conf")})
        for name in sorted(drop_ins, key=lambda name: name.encode()):
            yield drop_ins[name]


def _file_state(path: Path) -> tuple[int, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _drop_in_text(seconds: int) -> str:
    return (
        "# Written by lastcall, so that a shutdown waits for the pods of this node to end.\n"
        f"[Login]\n{_KEY}={seconds}\n"
    )


def _read_limit(path: Path) -> str:
    """The last value of the limit in a file that logind would take; "" if there is none."""
    try:
        content = path.read_text(errors="replace")
    except OSError:
        return ""
    section, limit = "", ""
    for line in _logical_lines(content):
        if line.startswith("["):
            section = line
        key, _, value = line.partition("=")
        if section == "[Login]" and key.strip() == _KEY and _is_span(value):
            limit = value.strip()
    return limit


def _logical_lines(content: str) -> Iterator[str]:
    """Without comments; a line that ends in a backslash goes on in the next one (systemd.syntax(7))."""
    pending = ""
    for line in content.removeprefix("\ufeff").split("\n"):
        stripped = line.strip()
        if stripped.startswith(("#", ";")):
            continue
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        yield (pending + line).strip()
        pending = ""


def _is_span(value: str) -> bool:
    try:
        timespan.parse(value)
    except ValueError:
        return False
    return True
