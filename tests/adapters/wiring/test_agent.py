"""What the agent's process does to itself."""

import gc

from lastcall.graceful.state_machine import AgentState
from lastcall.wiring import agent


def test_no_full_garbage_collection_holds_up_a_shutdown():
    try:
        agent._spare_garbage_collection(AgentState.ARMED)
        assert gc.get_freeze_count() == 0
        agent._spare_garbage_collection(AgentState.ENDING)
        assert gc.get_freeze_count() > 10_000
        agent._spare_garbage_collection(AgentState.RELEASED)
        assert gc.get_freeze_count() == 0, "after a cancel the garbage is collected again"
    finally:
        gc.freeze()  # as it was before
