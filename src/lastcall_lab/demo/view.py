"""The demo's display: a line for each pod in a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lastcall.graceful.shutdown.event_text import EventFormatter
from lastcall.model.pods import Pod, pod_priority
from lastcall.model.shutdown import (
    ContainerEnded,
    ContainerSignalled,
    HookEnded,
    HookStarted,
    JournalEvent,
    PhasePlan,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    ShutdownStarted,
)

_STYLES = {
    "running": "green",
    "preStop": "cyan",
    "SIGTERM": "yellow",
    "SIGKILL": "red",
    "ended": "dim",
    "killed": "red",
    "Succeeded": "dim",
    "waits": "blue",
}

_COLUMNS = ("pod", "state", "phase", "seconds")
_WIDE = 70
"""Width of a terminal for all columns; a narrower one shows only a pod's name, folded, and its state."""


@dataclass
class _Row:
    name: str
    priority: int
    state: str = "running"
    since: float | None = None
    ended: float | None = None
    phase: int | None = None
    containers: set[str] = field(default_factory=set)


class DemoView:
    """Follows one shutdown's events. ``now`` gives CLOCK_BOOTTIME seconds, ``footer`` the text below the pods."""

    def __init__(self, console: Console, now: Callable[[], float], footer: Callable[[], str] = lambda: "") -> None:
        self._footer = footer
        self._console = console
        self._now = now
        self._rows: dict[str, _Row] = {}
        self._plan: tuple[PhasePlan, ...] = ()
        self._phase_ends: dict[int, tuple[float, float]] = {}
        self._began: float | None = None
        self._lines = EventFormatter()
        self.headline = ""
        self.live = Live(get_renderable=self.to_table, console=console, refresh_per_second=8, transient=False)

    @property
    def is_terminal(self) -> bool:
        """Whether the output is a terminal that can be drawn on."""
        return self._console.is_terminal

    def show_text(self, text: str) -> None:
        """Shows a headline in the terminal, a line elsewhere."""
        self.headline = text
        if not self.is_terminal:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

    def add_pod(self, pod: Pod, phase: str) -> None:
        """Adds a pod that exists before the shutdown, in phase Running or Succeeded."""
        state = "running" if phase == "Running" else phase
        self._rows[pod.metadata.uid] = _Row(name=pod.key, priority=pod_priority(pod), state=state)

    def show_event(self, event: JournalEvent) -> None:
        """Records an event and shows it."""
        if isinstance(event, ShutdownStarted):
            self._began, self._plan = event.at, event.phases
        elif isinstance(event, PhaseStarted):
            self._phase_ends[event.index] = (event.at, event.seconds)
        elif isinstance(event, PhaseShortened) and event.index in self._phase_ends:
            self._phase_ends[event.index] = (self._phase_ends[event.index][0], event.seconds)
        else:
            self._show_pod_event(event)
        line = self._lines.format_event(event)
        if line and not self.is_terminal and self._began is not None:
            sys.stdout.write(f"{event.at - self._began:7.2f} s  {line}\n")
            sys.stdout.flush()

    def _show_pod_event(self, event: JournalEvent) -> None:
        row = self._rows.get(getattr(event, "uid", ""))
        if row is None:
            return
        match event:
            case PodStarted():
                row.since, row.phase = event.at, event.phase
                row.containers = set(event.containers)
            case HookStarted():
                row.state = "preStop"
            case HookEnded():
                row.state = "waits"
            case ContainerSignalled():
                row.state = f"SIG{event.signal}"
            case ContainerEnded():
                row.containers.discard(event.container)
            case PodEnded():
                row.state = "ended" if event.outcome is PodOutcome.GRACEFUL else "killed"
                row.ended = event.at

    def to_table(self) -> Table:
        """The current table."""
        table = Table(title=self.headline, title_justify="left", title_style="bold", expand=False, box=None)
        table.caption, table.caption_justify = self._footer() or None, "left"
        columns = _COLUMNS if self._console.width >= _WIDE else _COLUMNS[:2]
        for column in columns:
            table.add_column(column, no_wrap=column != "pod", overflow="fold")
        for row in sorted(self._rows.values(), key=lambda row: (row.priority, row.name)):
            cells = (
                Text(row.name),
                Text(row.state, _STYLES.get(row.state, "")),
                self._phase_text(row),
                self._seconds_text(row),
            )
            table.add_row(*cells[: len(columns)])
        return table

    def _phase_text(self, row: _Row) -> str:
        if row.phase is None:
            return ""
        started, seconds = self._phase_ends[row.phase]
        left = max(0.0, started + seconds - self._now())
        return f"{row.phase + 1}/{len(self._plan)}  {left:4.1f} s left" if row.ended is None else f"{row.phase + 1}"

    def _seconds_text(self, row: _Row) -> str:
        if row.since is None:
            return ""
        passed = (row.ended or self._now()) - row.since
        return f"{passed:5.1f}  " + "█" * round(passed * 2)
