"""The state machine of one node's shutdown, as a table.

The loop passes in what it *reads* (levels, not edges: a signal is only a reason to read) and carries out the returned
step. An observation that the state's row does not list raises ImpossibleTransition and leaves the state unchanged.
"""

from enum import Enum


class AgentState(Enum):
    """The state of the node's shutdown."""

    IDLE = "nothing is configured: the machine shuts down without waiting"
    ACQUIRING = "no delay lock is held yet"
    ARMED = "the delay lock is held"
    ENDING = "the machine is shutting down: pods are being ended"
    RELEASED = "the lock is released: the machine shuts down now"


class AgentObservation(Enum):
    """What the loop read in this round."""

    ENABLED = "the configuration asks for time"
    DISABLED = "the configuration asks for none"
    LOCKED = "the lock is held"
    UNLOCKED = "no lock is held"
    PREPARING = "PreparingForShutdown is true"
    NOT_SHUTTING_DOWN = "PreparingForShutdown is false"
    PHASES_OVER = "the phases are over, or the deadline has passed"


class AgentStep(Enum):
    """The loop's next step."""

    NOTHING = "nothing"
    BEGIN = "begin the phases, or resume those of an earlier process"
    RELEASE = "close every copy of the lock"
    CANCEL = "stop between two pods, and make the node ready again"


class ImpossibleTransition(RuntimeError):
    """An observation that cannot occur in this state: a programming error in the loop."""


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
    """The current state, and its transitions."""

    def __init__(self) -> None:
        self.state = AgentState.IDLE

    def advance(self, seen: AgentObservation) -> AgentStep:
        """Applies an observation and returns the next step. Raises ImpossibleTransition if the table lacks it."""
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
