"""The states of one node's shutdown, as a table.

The loop feeds it what it *reads* (levels, not edges: a signal is only a reason to read), and does the step that comes
back. What the table does not have cannot happen; if it happens all the same, the state stays and Impossible is raised.
"""

from enum import Enum


class AgentState(Enum):
    """Where the node is."""

    IDLE = "nothing is configured: the machine goes down without waiting"
    ACQUIRING = "no delay lock is held yet"
    ARMED = "the delay lock is held"
    ENDING = "the machine is going down: pods are being ended"
    RELEASED = "the lock is released: the machine goes down now"


class AgentObservation(Enum):
    """What a round of the loop has read."""

    ENABLED = "the configuration asks for time"
    DISABLED = "the configuration asks for none"
    LOCKED = "the lock is held"
    UNLOCKED = "no lock is held"
    PREPARING = "PreparingForShutdown is true"
    NOT_SHUTTING_DOWN = "PreparingForShutdown is false"
    PHASES_OVER = "the phases are over, or the deadline is"


class AgentStep(Enum):
    """What the loop does next."""

    NOTHING = "nothing"
    BEGIN = "begin with the phases, or go on with those of before"
    RELEASE = "close every copy of the lock"
    CANCEL = "stop between two pods, and be a ready node again"


class ImpossibleTransition(RuntimeError):
    """Seen in a state in which it makes no sense; a mistake in the loop."""


TABLE: dict[AgentState, dict[AgentObservation, tuple[AgentStep, AgentState]]] = {
    AgentState.IDLE: {
        AgentObservation.ENABLED: (AgentStep.NOTHING, AgentState.ACQUIRING),
        AgentObservation.DISABLED: (AgentStep.NOTHING, AgentState.IDLE),
        AgentObservation.LOCKED: (AgentStep.RELEASE, AgentState.IDLE),
        AgentObservation.UNLOCKED: (AgentStep.NOTHING, AgentState.IDLE),
        AgentObservation.PREPARING: (AgentStep.NOTHING, AgentState.IDLE),
        AgentObservation.NOT_SHUTTING_DOWN: (AgentStep.NOTHING, AgentState.IDLE),
    },
    AgentState.ACQUIRING: {
        AgentObservation.ENABLED: (AgentStep.NOTHING, AgentState.ACQUIRING),
        AgentObservation.DISABLED: (AgentStep.RELEASE, AgentState.IDLE),
        AgentObservation.LOCKED: (AgentStep.NOTHING, AgentState.ARMED),
        AgentObservation.UNLOCKED: (AgentStep.NOTHING, AgentState.ACQUIRING),
        AgentObservation.PREPARING: (AgentStep.BEGIN, AgentState.ENDING),
        AgentObservation.NOT_SHUTTING_DOWN: (AgentStep.NOTHING, AgentState.ACQUIRING),
    },
    AgentState.ARMED: {
        AgentObservation.ENABLED: (AgentStep.NOTHING, AgentState.ARMED),
        AgentObservation.DISABLED: (AgentStep.RELEASE, AgentState.IDLE),
        AgentObservation.LOCKED: (AgentStep.NOTHING, AgentState.ARMED),
        AgentObservation.UNLOCKED: (AgentStep.NOTHING, AgentState.ACQUIRING),
        AgentObservation.PREPARING: (AgentStep.BEGIN, AgentState.ENDING),
        AgentObservation.NOT_SHUTTING_DOWN: (AgentStep.NOTHING, AgentState.ARMED),
    },
    AgentState.ENDING: {  # a new configuration does not change what has begun
        AgentObservation.ENABLED: (AgentStep.NOTHING, AgentState.ENDING),
        AgentObservation.DISABLED: (AgentStep.NOTHING, AgentState.ENDING),
        AgentObservation.LOCKED: (AgentStep.NOTHING, AgentState.ENDING),
        AgentObservation.UNLOCKED: (AgentStep.NOTHING, AgentState.ENDING),
        AgentObservation.PREPARING: (AgentStep.NOTHING, AgentState.ENDING),
        AgentObservation.NOT_SHUTTING_DOWN: (AgentStep.CANCEL, AgentState.ACQUIRING),
        AgentObservation.PHASES_OVER: (AgentStep.RELEASE, AgentState.RELEASED),
    },
    AgentState.RELEASED: {
        AgentObservation.ENABLED: (AgentStep.NOTHING, AgentState.RELEASED),
        AgentObservation.DISABLED: (AgentStep.NOTHING, AgentState.RELEASED),
        AgentObservation.LOCKED: (AgentStep.RELEASE, AgentState.RELEASED),
        AgentObservation.UNLOCKED: (AgentStep.NOTHING, AgentState.RELEASED),
        AgentObservation.PREPARING: (AgentStep.NOTHING, AgentState.RELEASED),
        AgentObservation.NOT_SHUTTING_DOWN: (AgentStep.CANCEL, AgentState.ACQUIRING),
        AgentObservation.PHASES_OVER: (AgentStep.NOTHING, AgentState.RELEASED),
    },
}


class ShutdownStateMachine:
    """Where the node is now."""

    def __init__(self) -> None:
        self.state = AgentState.IDLE

    def advance(self, seen: AgentObservation) -> AgentStep:
        """The step to do now that this was read."""
        if seen not in TABLE[self.state]:
            raise ImpossibleTransition(f"{seen.name} in state {self.state.name}")
        step, self.state = TABLE[self.state][seen]
        return step


def mermaid_diagram() -> str:
    """The table as a Mermaid state diagram, for the documentation."""
    lines = ["stateDiagram-v2", "    [*] --> IDLE"]
    for state, row in TABLE.items():
        for seen, (step, target) in row.items():
            if target is not state or step is not AgentStep.NOTHING:
                action = "" if step is AgentStep.NOTHING else f" / {step.name}"
                lines.append(f"    {state.name} --> {target.name}: {seen.name}{action}")
    return "\n".join(lines) + "\n"
