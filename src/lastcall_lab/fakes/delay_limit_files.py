"""logind's configuration files as an object in this process."""

import math
from collections.abc import Sequence

from lastcall.aio import Signal
from lastcall.graceful import delay_limit
from lastcall.model import timespan
from lastcall.names import LOGIND_DROP_IN
from lastcall.ports.node import DropIn


class FakeLimitFiles:
    """``ports.DelayLimitFiles``: a few files, by name."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._changes = Signal()
        self._news = False

    def put(self, name: str, value: str) -> None:
        """Somebody writes a drop-in that sets the limit to a time span such as ``45`` or ``1h 2min``."""
        self._files[name] = value
        self._news = True
        self._changes.set()

    async def wait_for_change(self) -> None:
        """When somebody has written one since the last call."""
        while not self._news:
            await self._changes.next()
        self._news = False

    def write_limit(self, seconds: int) -> bool:
        """Makes our drop-in grant so much, or what others grant if that is more; False if nothing is to be changed."""
        values = [timespan.parse(setting.value) for setting in self.list_drop_ins()]
        highest = str(max([seconds, *(math.ceil(value) for value in values if math.isfinite(value))]))
        if (values and values[-1] >= seconds) or self._files.get(LOGIND_DROP_IN) == highest:
            return False
        self._files[LOGIND_DROP_IN] = highest
        return True

    def list_drop_ins(self) -> Sequence[DropIn]:
        """Every file, the last one wins."""
        directory = "/etc/systemd/logind.conf.d"
        return [DropIn(path=f"{directory}/{name}", value=value) for name, value in sorted(self._files.items())]

    def effective_seconds(self) -> float:
        """What the files grant, in seconds."""
        return delay_limit.effective_seconds(self.list_drop_ins())
