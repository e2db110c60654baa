"""Limits the messages per sender and second, so that a flood from one sender does not crowd out the others (pure)."""

EACH = 32
"""Messages per second of one peer, by address and port: it sends one or two in each round of questions."""

OTHERS = 128
"""Messages per second of all other senders together, such as a node that joined since the last read, or a flood."""

Sender = tuple[str, int]


class SenderRateLimiter:
    """Counts the messages of the current second. ``peers`` are the known addresses; peers send from ``port``."""

    def __init__(self, port: int) -> None:
        self.peers: frozenset[str] = frozenset()
        self._port = port
        self._begun = 0.0
        self._heard: dict[Sender | None, int] = {}

    def allow(self, sender: Sender, now: float) -> bool:
        """Whether one more message of this sender is allowed at ``now`` (seconds)."""
        if now - self._begun >= 1:
            self._begun, self._heard = now, {}
        peer = sender[1] == self._port and sender[0] in self.peers
        whose = sender if peer else None
        heard = self._heard.get(whose, 0)
        if heard >= (EACH if peer else OTHERS):
            return False
        self._heard[whose] = heard + 1
        return True
