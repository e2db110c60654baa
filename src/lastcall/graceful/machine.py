"""The states of one node's shutdown, as a table.

The loop feeds it what it *reads* (levels, not edges: a signal is only a reason to read), and does the step that comes
back. What the table does not have cannot happen; if it happens all the same, the state stays and Impossible is raised.
"""

from enum import Enum


class State(Enum):
    """Where the node is."""

    IDLE = "nothing is configured: the machine goes down without waiting"
    SEEKING = "no delay lock is held yet"
    ARMED = "the delay lock is held"
    ENDING = "the machine is going down: pods are being ended"
    LEAVING = "the lock is released: the machine goes down now"


class Seen(Enum):
    """What a round of the loop has read."""

    ENABLED = "the configuration asks for time"
    DISABLED = "the configuration asks for none"
    LOCKED = "the lock is held"
    UNLOCKED = "no lock is held"
    PREPARING = "PreparingForShutdown is true"
    QUIET = "PreparingForShutdown is false"
    OVER = "the phases are over, or the deadline is"


class Step(Enum):
    """What the loop does next."""

    NOTHING = "nothing"
    BEGIN = "begin with the phases, or go on with those of before"
    RELEASE = "close every copy of the lock"
    COME_BACK = "stop between two pods, and be a ready node again"


class Impossible(RuntimeError):
    """Seen in a state in which it makes no sense; a mistake in the loop."""


TABLE: dict[State, dict[Seen, tuple[Step, State]]] = {
    State.IDLE: {
        Seen.ENABLED: (Step.NOTHING, State.SEEKING),
        Seen.DISABLED: (Step.NOTHING, State.IDLE),
        Seen.LOCKED: (Step.RELEASE, State.IDLE),
        Seen.UNLOCKED: (Step.NOTHING, State.IDLE),
        Seen.PREPARING: (Step.NOTHING, State.IDLE),
        Seen.QUIET: (Step.NOTHING, State.IDLE),
    },
    State.SEEKING: {
        Seen.ENABLED: (Step.NOTHING, State.SEEKING),
        Seen.DISABLED: (Step.RELEASE, State.IDLE),
        Seen.LOCKED: (Step.NOTHING, State.ARMED),
        Seen.UNLOCKED: (Step.NOTHING, State.SEEKING),
        Seen.PREPARING: (Step.BEGIN, State.ENDING),
        Seen.QUIET: (Step.NOTHING, State.SEEKING),
    },
    State.ARMED: {
        Seen.ENABLED: (Step.NOTHING, State.ARMED),
        Seen.DISABLED: (Step.RELEASE, State.IDLE),
        Seen.LOCKED: (Step.NOTHING, State.ARMED),
        Seen.UNLOCKED: (Step.NOTHING, State.SEEKING),
        Seen.PREPARING: (Step.BEGIN, State.ENDING),
        Seen.QUIET: (Step.NOTHING, State.ARMED),
    },
    State.ENDING: {  # a new configuration does not change what has begun
        Seen.ENABLED: (Step.NOTHING, State.ENDING),
        Seen.DISABLED: (Step.NOTHING, State.ENDING),
        Seen.LOCKED: (Step.NOTHING, State.ENDING),
        Seen.UNLOCKED: (Step.NOTHING, State.ENDING),
        Seen.PREPARING: (Step.NOTHING, State.ENDING),
        Seen.QUIET: (Step.COME_BACK, State.SEEKING),
        Seen.OVER: (Step.RELEASE, State.LEAVING),
    },
    State.LEAVING: {
        Seen.ENABLED: (Step.NOTHING, State.LEAVING),
        Seen.DISABLED: (Step.NOTHING, State.LEAVING),
        Seen.LOCKED: (Step.RELEASE, State.LEAVING),
        Seen.UNLOCKED: (Step.NOTHING, State.LEAVING),
        Seen.PREPARING: (Step.NOTHING, State.LEAVING),
        Seen.QUIET: (Step.COME_BACK, State.SEEKING),
        Seen.OVER: (Step.NOTHING, State.LEAVING),
    },
}


class Machine:
    """Where the node is now."""

    def __init__(self) -> None:
        self.state = State.IDLE

    def see(self, seen: Seen) -> Step:
        """The step to do now that this was read."""
        if seen not in TABLE[self.state]:
            raise Impossible(f"{seen.name} in state {self.state.name}")
        step, self.state = TABLE[self.state][seen]
        return step


def diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> IDLE"]
    for state, row in TABLE.items():
        for seen, (step, target) in row.items():
            if target is not state or step is not Step.NOTHING:
                action = "" if step is Step.NOTHING else f" / {step.name}"
                lines.append(f"    {state.name} --> {target.name}: {seen.name}{action}")
    return "\n".join(lines) + "\n"
