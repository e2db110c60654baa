"""How many messages are heard of each sender in a second, so that a flood of one takes nothing from the others (pure)."""

EACH = 32
"""Of one peer, by its address and port: it says one or two in each round of questions."""

OTHERS = 128
"""Of all others together. Among them is a node that has joined since all nodes were read, and whoever floods."""

Sender = tuple[str, int]


class SenderRateLimiter:
    """What was heard in the present second. ``peers`` are known by their addresses, and say all from ``port``."""

    def __init__(self, port: int) -> None:
        self.peers: frozenset[str] = frozenset()
        self._port = port
        self._begun = 0.0
        self._heard: dict[Sender | None, int] = {}

    def allow(self, sender: Sender, now: float) -> bool:
        """Whether one more of this sender is heard at ``now`` (seconds)."""
        if now - self._begun >= 1:
            self._begun, self._heard = now, {}
        peer = sender[1] == self._port and sender[0] in self.peers
        whose = sender if peer else None
        heard = self._heard.get(whose, 0)
        if heard >= (EACH if peer else OTHERS):
            return False
        self._heard[whose] = heard + 1
        return True
