"""The units of the recorder's simulated machine: services that run or not, and transient timers."""

import re

from lastcall_lab.private_logind.programs import SYSTEMD_PATH

STOP_SECONDS = 0.05
"""Seconds that a service takes to stop."""


def unit_path(name: str) -> str:
    """The path of the unit on the bus."""
    escaped = re.sub(r"[^A-Za-z0-9]", lambda match: f"_{ord(match[0]):02x}", name)
    return f"{SYSTEMD_PATH}/unit/{escaped}"


class FakeUnits:
    """At first nothing is active. Only transient timers exist, and they never elapse."""

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._made: set[str] = set()

    def active_state(self, path: str) -> str:
        """The unit's ActiveState."""
        return self._states.get(path, "inactive")

    def is_installed(self, path: str) -> bool:
        """Whether there is such a unit. All services exist, except lastcall's own."""
        if path.endswith("_2etimer"):
            return path in self._states
        return path != unit_path("lastcall-agent.service")

    def start(self, name: str) -> None:
        """Makes the unit active at once."""
        self._states[unit_path(name)] = "active"

    def create_transient(self, name: str) -> bool:
        """Creates a transient unit, active at once; False if there is one of this name."""
        if name in self._made:
            return False
        self._made.add(name)
        self.start(name)
        return True

    def stop(self, name: str) -> float:
        """Stops the unit: returns the seconds until ``finish_stop``. A transient unit disappears at once."""
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
