"""The units of the recorder's simulated machine: services that run or not, and transient units."""

import os
import re
from collections.abc import Sequence

from lastcall_lab.private_logind.programs import SYSTEMD_PATH

STOP_SECONDS = 0.05
"""Seconds that a service takes to stop."""


def unit_path(name: str) -> str:
    """The path of the unit on the bus."""
    escaped = re.sub(r"[^A-Za-z0-9]", lambda match: f"_{ord(match[0]):02x}", name)
    return f"{SYSTEMD_PATH}/unit/{escaped}"


class FakeUnits:
    """At first nothing is active. Timers exist only as transient ones, and they never elapse.

    A transient service keeps the descriptors that it gets, as systemd does, until it is stopped.
    """

    def __init__(self) -> None:
        self._states: dict[str, str] = {}
        self._made: dict[str, Sequence[int]] = {}

    def active_state(self, path: str) -> str:
        """The unit's ActiveState."""
        return self._states.get(path, "inactive")

    def is_installed(self, path: str) -> bool:
        """Whether there is such a unit. All services exist, except lastcall's own."""
        if path.endswith("_2etimer") or path.startswith(unit_path("lastcall-")):
            return path in self._states
        return True

    def start(self, name: str) -> None:
        """Makes the unit active at once."""
        self._states[unit_path(name)] = "active"

    def create_transient(self, name: str, descriptors: Sequence[int] = ()) -> bool:
        """Creates a transient unit, active at once; False if there is one of this name."""
        if name in self._made:
            _close_all(descriptors)
            return False
        self._made[name] = descriptors
        self.start(name)
        return True

    def stop(self, name: str) -> float:
        """Stops the unit: returns the seconds until ``finish_stop``. A transient unit disappears at once."""
        path = unit_path(name)
        if name in self._made or path not in self._states:
            _close_all(self._made.pop(name, ()))
            self._states.pop(path, None)
            return 0.0
        self._states[path] = "deactivating"
        return STOP_SECONDS

    def finish_stop(self, name: str) -> None:
        """The unit has stopped, unless it was started again meanwhile."""
        if self.active_state(unit_path(name)) == "deactivating":
            del self._states[unit_path(name)]


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
