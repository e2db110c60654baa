"""What happened to a machine of chance, told by the outside: who pressed, what was unlocked, when which fault was there."""

import math
from dataclasses import dataclass, field

from lastcall_lab.fakes.logind import FakeLogind

QUIET = 20.0
"""Seconds without faults after which everything must be in order again."""


class Spans(list):
    """When something was so: pairs of from and to, the last of which may be open."""

    def begin(self, at):
        if not self or self[-1][1] is not None:
            self.append([at, None])

    def end(self, at):
        if self and self[-1][1] is None:
            self[-1][1] = at

    def touch(self, start, end):
        """Whether it was so at any time between these two, both included."""
        return any(a <= end and (b is None or b >= start) for a, b in self)

    def last_end(self, start, end):
        """When it was last over, of what touches this time; inf if it was not."""
        ends = [math.inf if b is None else b for a, b in self if a <= end and (b is None or b >= start)]
        return max(ends, default=start)


@dataclass(kw_only=True)
class Press:
    """A shutdown as logind has it."""

    at: float
    limit: float
    unlocked: bool  # there was no lock
    kept: bool  # a holder had a copy of it
    healthy: bool  # everything had been in order for long
    cancelled: float | None = None
    down: float | None = None

    @property
    def end(self):
        return next((at for at in (self.cancelled, self.down) if at is not None), math.inf)


class Witness(FakeLogind):
    """A logind that notes when shutdowns begin, are forgotten and go on, and by whose doing the last lock went."""

    def __init__(self, clock, history, **options):
        super().__init__(clock, **options)
        self._history = history

    def _shut_down(self, kind):
        before = self._preparing
        try:
            self._history.about_to_press(self)
            super()._shut_down(kind)
        finally:
            if before or not self._preparing:
                self._history.presses.remove(self._history.pressing)

    def _forget_shutdown(self):
        if self._preparing and not self._job:
            self._history.presses[-1].cancelled = self._clock.boottime()
        super()._forget_shutdown()

    def _start_unit(self):
        super()._start_unit()
        self._history.presses[-1].down = self._clock.boottime()

    def close(self, descriptor):
        if len(self.descriptors) == 1:
            self._history.unlocked.append((self._clock.boottime(), self._history.doing))
        super().close(descriptor)


@dataclass
class History:
    """What happened, by no word of the agent's."""

    seed: int
    presses: list = field(default_factory=list)
    pressing: Press | None = None
    unlocked: list = field(default_factory=list)  # (when, by which fault or "")
    configs: list = field(default_factory=list)  # (since when, AgentConfig)
    born: dict = field(default_factory=dict)  # uid -> (when, Pod, behaviours)
    dead: Spans = field(default_factory=Spans)
    cut_off: Spans = field(default_factory=Spans)  # the bus or logind is down
    away: Spans = field(default_factory=Spans)
    full: Spans = field(default_factory=Spans)
    faults: list = field(default_factory=list)  # (when, text)
    errors: list = field(default_factory=list)
    doing: str = ""
    now: float = 0.0

    def config(self, at):
        return [config for since, config in self.configs if since <= at][-1]

    def about_to_press(self, logind):
        at = logind._clock.boottime()
        since = at - QUIET
        quiet = not any(spans.touch(since, at) for spans in (self.dead, self.cut_off)) and since >= self.configs[-1][0]
        self.pressing = Press(
            at=at,
            limit=logind.limit,
            unlocked=not logind.descriptors,
            kept=self.machine.holder.descriptor is not None,
            healthy=quiet
            and self.machine.life.fuse is None
            and not any(since <= when <= at for when, _ in self.faults),
        )
        self.presses.append(self.pressing)

    def timeline(self):
        """Everything, in order, for people."""
        lines = [(at, 2, f"{d.what:9} {d.uid} {d.container}") for d in self.deliveries for at in (d.at,)]
        lines += [(at, 1, f"node: {what}") for at, what in self.told]
        lines += [(at, 0, text) for at, text in self.faults]
        for press in self.presses:
            lines.append((press.at, 0, f"=== the power button; {press.limit:g} s granted"))
            lines += [(press.cancelled, 0, "=== cancelled")] if press.cancelled is not None else []
            lines += [(press.down, 3, "=== the machine goes down")] if press.down is not None else []
        lines += [(at, 3, f"no lock any more ({cause or 'released'})") for at, cause in self.unlocked]
        for at, spec, behaviours in self.born.values():
            grace, count = spec.spec.termination_grace_period_seconds, len(spec.spec.containers)
            text = (
                f"runs: {spec.metadata.uid}, priority {spec.spec.priority}, grace {grace}, {count} main, {behaviours}"
            )
            lines.append((at, 0, text))
        for at, config in self.configs:
            groups = ", ".join(f"{group.priority}: {group.seconds} s" for group in config.groups)
            lines.append((at, 0, f"configuration: {config.mode.value}, {groups or 'none'}"))
        return "\n".join(f"{at:9.3f}  {text}" for at, _, text in sorted(lines, key=lambda line: line[:2]))
