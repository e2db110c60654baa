"""A clock that is moved by hand."""


class Hand:
    """``ports.Clock``; both clocks show ``now``, and nobody waits."""

    def __init__(self, now=0.0):
        self.now = now

    def boottime(self):
        return self.now

    def wall(self):
        return self.now

    async def sleep(self, seconds):
        self.now += seconds
