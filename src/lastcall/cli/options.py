"""Options that several verbs share."""

import functools
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from lastcall.adapters.host.bounded_reads import STATE_BYTES, read_file, read_stream
from lastcall.errors import InvalidInput, LastcallError
from lastcall.model import duration

STATE_DIR = Path("/var/lib/lastcall")
CONFIG = Path("/etc/lastcall/agent.yaml")
_LAST_YEAR = 9000
"""Later times leave no room for adding seconds."""
CONTAINERD = "unix:///run/containerd/containerd.sock"


def read_content(path: str, most: int = STATE_BYTES) -> bytes:
    """Content of a file or of standard input (``-``); InvalidInput if unreadable, or longer than ``most`` bytes."""
    if path == "-" and sys.stdin is None:
        raise InvalidInput(source_name(path), ["cannot be read: it is closed"])
    try:
        return read_stream(sys.stdin.buffer, most, source_name(path)) if path == "-" else read_file(Path(path), most)
    except OSError as error:
        raise InvalidInput(source_name(path), [f"cannot be read: {error.strerror}"]) from error


def source_name(path: str) -> str:
    """The name of the source in messages."""
    return "standard input" if path == "-" else path


def require_stdout() -> None:
    """Raises LastcallError if standard output is closed: otherwise the answer would be lost silently."""
    if sys.stdout is None:
        raise LastcallError("standard output is closed: the answer would be lost")


class AddressParam(click.ParamType[tuple[str, int] | None]):
    """``host:port``, ``[v6]:port``, or 0 for none."""

    name = "host:port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int] | None:
        """Host and port; None for 0."""
        if value is None or isinstance(value, tuple) or value == "0":
            return value if isinstance(value, tuple) else None
        host, _, port = str(value).rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            self.fail(f"{value!r} is not host:port, nor 0 for none", param, ctx)
        return host.strip("[]"), int(port)


class DurationParam(click.ParamType[float]):
    """A Go duration of at least ``least`` seconds, as seconds; also the word ``endless``, if given, as infinity."""

    name = "duration"

    def __init__(self, *, endless: str = "", least: float = 0.0) -> None:
        self._endless = endless
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds, which may be given as a number already."""
        if isinstance(value, float):
            return value
        if self._endless and value == self._endless:
            return float("inf")
        try:
            nanoseconds = duration.parse(str(value))
        except ValueError as error:
            said = str(error).removeprefix("time: ")  # Go's package, which means nothing to users of the command line
            more = f', or "{self._endless}"' if self._endless else ""
            self.fail(f'{said}; expected a duration such as "30s"{more}', param, ctx)
        if nanoseconds < 0:
            self.fail(f"{value} must not be negative", param, ctx)
        if nanoseconds < self._least * duration.SECOND:
            self.fail(f"{value} must be at least {duration.format_seconds(self._least)}", param, ctx)
        return nanoseconds / duration.SECOND


class TimeParam(click.ParamType[datetime]):
    """An RFC 3339 time."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time in UTC."""
        import msgspec

        if isinstance(value, datetime):
            return value
        try:
            moment = msgspec.convert(value, datetime)
        except msgspec.ValidationError:
            moment = None
        if moment is None or moment.tzinfo is None or not 1970 <= moment.year < _LAST_YEAR:
            self.fail(f"{value!r} is not an RFC 3339 time such as 2026-01-31T12:00:00Z", param, ctx)
        return moment.astimezone(UTC)


_PROGRAM = (
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        default=CONFIG,
        show_default=True,
        help="An AgentConfiguration or a KubeletConfiguration.",
    ),
    click.option(
        "--state-dir",
        type=click.Path(path_type=Path, resolve_path=True),  # a pod's processes start in other directories
        default=STATE_DIR,
        show_default=True,
        help="Where journals and the lock's holder live.",
    ),
    click.option("--node-name", help="This node's name.  [default: the host name]"),
    click.option(
        "--metrics-bind-address",
        type=AddressParam(),
        default="127.0.0.1:9466",
        show_default=True,
        help="Where /metrics, /healthz and /readyz are served; 0 for nowhere.",
    ),
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True),
    click.option("-v", "--verbose", is_flag=True, help="Also tells what is of interest only when something is wrong."),
    click.option(
        "--logind-root",
        type=click.Path(path_type=Path),
        default=Path("/"),
        hidden=True,
        help="Where etc/systemd lies, for a private logind.",
    ),
)


def agent_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options of every verb that runs an agent; the function gets them as ``settings`` (wiring.Settings)."""

    @functools.wraps(function)
    def with_settings(
        *,
        config: Path,
        state_dir: Path,
        node_name: str | None,
        metrics_bind_address: tuple[str, int] | None,
        log_format: str,
        verbose: bool,
        logind_root: Path,
        **others: Any,
    ) -> None:
        from lastcall.adapters.telemetry import logs
        from lastcall.wiring import agent

        logs.configure_logging(as_json=log_format == "json", verbose=verbose)
        settings = agent.AgentSettings(
            config=config,
            state_dir=state_dir,
            node_name=node_name or agent.host_name(),
            metrics=metrics_bind_address,
            logind_root=logind_root,
        )
        function(settings=settings, **others)

    decorated: Callable[..., None] = with_settings
    for option in reversed(_PROGRAM):
        decorated = option(decorated)
    return decorated


endpoint = click.option(
    "--container-runtime-endpoint", default=CONTAINERD, show_default=True, help="The socket of the CRI runtime."
)
