"""A fake of logind's configuration files, in memory."""

import math
from collections.abc import Sequence

from lastcall.aio import Signal
from lastcall.graceful import delay_limit
from lastcall.model import timespan
from lastcall.names import LOGIND_DROP_IN
from lastcall.ports.node import DropIn


class FakeLimitFiles:
    """``ports.node.DelayLimitFiles``: a few files, by name."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._changes = Signal()
        self._news = False

    def put(self, name: str, value: str) -> None:
        """Writes a drop-in as another program would: sets the limit to a time span such as ``45`` or ``1h 2min``."""
        self._files[name] = value
        self._news = True
        self._changes.set()

    async def wait_for_change(self) -> None:
        """Waits for a write of another program since the last call."""
        while not self._news:
            await self._changes.next()
        self._news = False

    def write_limit(self, seconds: int) -> bool:
        """Makes our drop-in grant this limit, or a higher one of others; False if nothing has to change."""
        values = [timespan.parse(setting.value) for setting in self.list_drop_ins()]
        highest = str(max([seconds, *(math.ceil(value) for value in values if math.isfinite(value))]))
        if (values and values[-1] >= seconds) or self._files.get(LOGIND_DROP_IN) == highest:
            return False
        self._files[LOGIND_DROP_IN] = highest
        return True

    def list_drop_ins(self) -> Sequence[DropIn]:
        """All files; the last one takes precedence."""
        directory = "/etc/systemd/logind.conf.d"
        return [DropIn(path=f"{directory}/{name}", value=value) for name, value in sorted(self._files.items())]

    def effective_seconds(self) -> float:
        """The limit of the files, in seconds."""
        return delay_limit.effective_seconds(self.list_drop_ins())
