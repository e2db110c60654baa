"""The files that configure systemd-logind's InhibitDelayMaxSec (logind.conf(5)), as ``ports.node.DelayLimitFiles``."""

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
"""A file in an earlier directory hides files of the same name in later ones."""

_LOOK_SECONDS = 1.0
"""Seconds between two checks whether a file has changed."""

_Look = tuple[tuple[Path, tuple[int, ...]], ...]

_KEY = "InhibitDelayMaxSec"


class LogindConf:
    """``root`` is the directory that logind uses as /; it differs from / only for a private logind."""

    def __init__(self, root: Path = Path("/"), *, name: str = names.LOGIND_DROP_IN) -> None:
        self._root = root
        self._ours = root / "etc/systemd/logind.conf.d" / name
        self._known: _Look | None = None

    def write_limit(self, seconds: int) -> bool:
        """Writes our drop-in for this limit; False, without a write, if the files grant as much already.

        The limit is never lowered: our file, which takes precedence, adopts a higher one (but not ``infinity``, with
        which logind of systemd 252 cannot power off). The change takes effect when logind reads its files again.
        NotPermitted names the path. Blocks for the disk.
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
        """Every file that sets the limit, in systemd's order: the last one takes precedence.

        Paths are as logind sees them, below its root. Values that logind ignores (empty or not a time span) are left
        out. Unreadable files count as empty, as they do for logind.
        """
        found: list[DropIn] = []
        for path in self._config_files():
            value = _read_limit(path)
            if value:
                found.append(DropIn(path=f"/{path.relative_to(self._root)}", value=value))
        return found

    async def wait_for_change(self) -> None:
        """Polls the files' times and sizes, but not their content, each second; a check takes some 0.1 ms.

        The changes of ``write_limit`` do not count.
        """
        if self._known is None:
            self._known = self._file_states()
        while (now := self._file_states()) == self._known:  # noqa: ASYNC110  (the file system wakes nobody)
            await asyncio.sleep(_LOOK_SECONDS)
        self._known = now

    def _file_states(self) -> "_Look":
        return tuple((path, _file_state(path)) for path in self._config_files())

    def _config_files(self) -> Iterator[Path]:
        """The first main file (before systemd 256 only the one in /etc counts), then the drop-ins by name."""
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
    """The file's last value of the limit that logind would accept; "" if there is none."""
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
    """The lines without comments; a line that ends in a backslash continues in the next one (systemd.syntax(7))."""
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
