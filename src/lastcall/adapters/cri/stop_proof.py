"""Infers from answers to other requests whether the runtime has sent SIGTERM for the stops it was asked for (pure).

One answer proves only that the runtime has read the earlier requests: a runtime that was frozen reads both at once. It
then asks the container's shim for its state and has it send SIGTERM, which takes as long as a kill when many containers
stop at once. So a second answer is needed, to a request sent that much later than the first answer came.
"""

import math


class StopProof:
    """The conclusions from the answers. All times are CLOCK_BOOTTIME seconds."""

    def __init__(self) -> None:
        self._read_until = self._read_at = -math.inf
        self.sent_until = -math.inf
        """The runtime has sent SIGTERM for all stops that were requested until then."""

    def add_answer(self, asked: float, answered: float, *, needed: float) -> None:
        """Records an answer of the runtime; ``needed`` is how long SIGTERM takes for the stops under way."""
        if asked >= self._read_at + needed:
            self.sent_until = self._read_until
            self._read_until, self._read_at = asked, answered
