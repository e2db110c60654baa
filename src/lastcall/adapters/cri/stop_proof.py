"""Whether the runtime has sent SIGTERM for the stops that it was asked for, by what it answers beside them (pure).

One answer proves only that the runtime has read what was asked before: a runtime that was frozen reads both at once. It
then asks the shim of the container for its state, and sends SIGTERM by it, which takes as long as a kill where many are
stopped at once. So a second answer is needed, to a question that was asked so much later than the first answer came.
"""

import math


class StopProof:
    """What the answers prove. All times are CLOCK_BOOTTIME seconds."""

    def __init__(self) -> None:
        self._read_until = self._read_at = -math.inf
        self.sent_until = -math.inf
        """For stops that were asked for until then the runtime has sent SIGTERM."""

    def add_answer(self, asked: float, answered: float, *, needed: float) -> None:
        """The runtime has answered a question; ``needed`` is how long SIGTERM takes, for the stops that are under way."""
        if asked >= self._read_at + needed:
            self.sent_until = self._read_until
            self._read_until, self._read_at = asked, answered
