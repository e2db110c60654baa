"""When each container ran, derived from container events and the machines' power (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lastcall_lab.simulation.truth import ContainerEvent, MachineEvent


@dataclass
class ContainerLife:
    """One run of a container. ``ended`` is None while it lives; ``cut``: its machine's power was cut."""

    node: str
    uid: str
    container: str
    began: float
    ended: float | None = None
    cut: bool = False
    hooks: list[list[float]] = field(default_factory=list)
    """When a preStop hook began, and when it was over, if it was."""
    term: float | None = None
    kill: float | None = None

    def is_alive_at(self, at: float) -> bool:
        """Whether it did at that moment; at its end it does no more, but for a power cut, which has met it alive."""
        return self.began <= at and (self.ended is None or self.ended > at or (self.cut and self.ended == at))

    def first_signal_since(self, since: float) -> float | None:
        """When the first hook or signal came that came then or later."""
        came = [*(hook[0] for hook in self.hooks), self.term, self.kill]
        return min((at for at in came if at is not None and at >= since), default=None)


def collect_lives(happenings: Iterable[ContainerEvent], powers: Iterable[MachineEvent]) -> Sequence[ContainerLife]:
    """In the order in which they began."""
    found: list[ContainerLife] = []
    open_: dict[tuple[str, str], ContainerLife] = {}
    deaths = (ContainerEvent(one.at, one.node, "", "", one.what) for one in powers if one.what == "off")
    for one in sorted([*happenings, *deaths], key=lambda one: one.at):
        if one.what == "off":
            for key in [key for key, life in open_.items() if life.node == one.node]:
                life = open_.pop(key)
                life.ended, life.cut = one.at, True
        elif one.what == "start":
            life = open_[one.uid, one.container] = ContainerLife(one.node, one.uid, one.container, one.at)
            found.append(life)
        elif life_ := open_.get((one.uid, one.container)):
            _apply_event(life_, one)
            if one.what == "exit":
                del open_[one.uid, one.container]
    return found


def _apply_event(life: ContainerLife, one: ContainerEvent) -> None:
    if one.what == "hook":
        life.hooks.append([one.at])
    elif one.what == "hook over":
        for hook in life.hooks:
            if hook == [one.began]:
                hook.append(one.at)
                break
    elif one.what == "TERM":
        life.term = one.at
    elif one.what == "KILL":
        life.kill = one.at
    elif one.what == "exit":
        life.ended = one.at
