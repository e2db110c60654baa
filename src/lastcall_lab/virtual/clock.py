"""The clock of virtual time."""

import asyncio


class VirtualClock:
    """``ports.Clock`` on the running virtual loop; the wall clock begins at ``epoch`` (seconds since 1970)."""

    def __init__(self, epoch: float = 1_800_000_000.0) -> None:
        self._epoch = epoch

    def boottime(self) -> float:
        """Virtual seconds."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Virtual wall clock."""
        return self._epoch + self.boottime()

    async def sleep(self, seconds: float) -> None:
        """Waits in virtual time."""
        await asyncio.sleep(max(0.0, seconds))
