"""The units of the machine that the recorder plays: services that run or not, and timers that are made."""

import re

from lastcall_lab.private_logind.programs import SYSTEMD_PATH

STOP_SECONDS = 0.05
"""How long a service takes to end."""


def unit_path(name: str) -> str:
    """Where the unit is on the bus."""
    escaped = re.sub(r"[^A-Za-z0-9]", lambda match: f"_{ord(match[0]):02x}", name)
    return f"{SYSTEMD_PATH}/unit/{escaped}"


class FakeUnits:
    """At first nothing is active. There are no timers but those that are made, and they never elapse."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._made: set[str] = set()

    def active_state(self, path: str) -> str:
        """ActiveState."""
        return self._states.get(path, "inactive")

    def is_installed(self, path: str) -> bool:
        """Whether there is such a unit. All services are, but lastcall's own."""
        if path.endswith("_2etimer"):
            return path in self._states
        return path != unit_path("lastcall-agent.service")

    def start(self, name: str) -> None:
        """It is active at once."""
        self._states[unit_path(name)] = "active"

    def create_transient(self, name: str) -> bool:
        """A transient unit, active at once; False if there is one of this name."""
        if name in self._made:
            return False
        self._made.add(name)
        self.start(name)
        return True

    def stop(self, name: str) -> float:
        """How many seconds it takes until ``finish_stop`` is due. A transient unit is gone at once."""
        path = unit_path(name)
        if name in self._made or path not in self._states:
            self._made.discard(name)
            self._states.pop(path, None)
            return 0.0
        self._states[path] = "deactivating"
        return STOP_SECONDS

    def finish_stop(self, name: str) -> None:
        """The unit has stopped, unless it was started again meanwhile."""
        if self.active_state(unit_path(name)) == "deactivating":
            del self._states[unit_path(name)]
