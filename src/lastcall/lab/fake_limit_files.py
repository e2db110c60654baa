"""logind's configuration files as an object in this process."""

from collections.abc import Sequence

from lastcall.graceful import limit
from lastcall.names import LOGIND_DROP_IN
from lastcall.ports import DropIn


class FakeLimitFiles:
    """``ports.DelayLimitFiles``: a few files, by name."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}

    def put(self, name: str, value: str) -> None:
        """Somebody writes a drop-in that sets the limit to a time span such as ``45`` or ``1h 2min``."""
        self._files[name] = value

    def write(self, seconds: int) -> bool:
        """Makes our drop-in say so; False if the files grant as much already."""
        if limit.effective(self.settings()) >= seconds or self._files.get(LOGIND_DROP_IN) == str(seconds):
            return False
        self.put(LOGIND_DROP_IN, str(seconds))
        return True

    def settings(self) -> Sequence[DropIn]:
        """Every file, the last one wins."""
        directory = "/etc/systemd/logind.conf.d"
        return [DropIn(path=f"{directory}/{name}", value=value) for name, value in sorted(self._files.items())]

    def effective(self) -> float:
        """What the files grant, in seconds."""
        return limit.effective(self.settings())
