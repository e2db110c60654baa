"""When a node with an armed watchdog has certainly reset itself (pure): the arithmetic, and the rejected settings.

The agent decides to pet the watchdog only while its last accepted renewal of its own Lease was **sent** less than
``lease`` seconds ago on its own clock. Four times add up after that renewal:

- ``lease``: the last moment at which the agent can decide to pet.
- ``timeout``: the pet reaches the device at most so late, if the agent is paused between the decision and the write. If
  it took longer, the device would have fired already.
- ``timeout`` again: the agent may be killed so long after that pet. The kernel itself then pets a device that is closed
  without the magic character (``watchdog_release`` in ``drivers/watchdog/watchdog_dev.c``).
- ``timeout`` a third time: the device fires at most so long after that. Nothing else pets it: the agent's next process
  opens the device only after a renewal of its own.

The observer saw the renewal later than it was sent, so counting from the observation is safe. Clocks differ, so the sum
is multiplied by 1 + ``drift``.

With ``peers`` the agent also decides to pet while more than half of all nodes report that they have lost the API
server, in answer to a question of less than ``report_after`` seconds ago. The sum then begins when neither condition
holds: half of the nodes or more have made no such report for ``report_after`` seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.watchdog_peers import PeerSettings

LEAST_DRIFT, MOST_DRIFT = 0.001, 0.1
"""The range for real clocks: none is certainly better than one part in a thousand, including slewing."""


@dataclass(frozen=True, kw_only=True)
class WatchdogTiming:
    """A watchdog's settings in seconds. InvalidInput if they give no bound, or would reset healthy nodes.

    The rules about the device follow ``Documentation/watchdog/watchdog-api.rst`` of the Linux kernel.
    """

    lease: float
    """How long after a renewal was sent the agent keeps petting."""
    pet: float
    """The time between two pets, and between two renewals."""
    timeout: float
    """The device's timeout as the driver reports it after setting it: drivers may round it."""
    drift: float = 0.01
    """The largest relative difference between the clocks of the observer, the node and the device: 0.01 is 1 %."""
    survives_close: bool = True
    """Whether the device keeps running when closed without the magic character, as when the agent is killed: the driver
    supports magic close, or ``nowayout`` is set. A crash disarms other devices."""
    resets: bool = True
    """Whether the device resets the machine instead of only raising an alarm."""
    peers: bool = False
    """Whether the agent also pets by agreement with peers."""

    def __post_init__(self) -> None:
        if wrong := [f"{field}: {text}" for field, text in self._violations()]:
            raise InvalidInput("watchdog", wrong)

    @property
    def reset_bound(self) -> float:
        """Seconds after a renewal by which the node has reset itself if no other renewal follows."""
        return (self.lease + 3 * self.timeout) * (1 + self.drift)

    @property
    def report_after(self) -> float:
        """Seconds without a renewal until an agent reports losing the API server; also the lifetime of a report."""
        return self.lease / 2

    def reset_by(self, renewed: float, calm_since: float | None = None) -> float | None:
        """When the node has certainly reset itself, on the observer's clock; None if unknown.

        ``renewed`` is when the last renewal was observed. With ``peers``, at least half of the nodes that it counts
        must have made no report from ``calm_since`` until the returned time.
        """
        if not self.peers:
            return renewed + self.reset_bound
        if calm_since is None:
            return None
        petted = max(renewed + self.lease * (1 + self.drift), calm_since + self.report_after * (1 + self.drift))
        return petted + 3 * self.timeout * (1 + self.drift)

    @property
    def bound_arithmetic(self) -> str:
        """The computation of the bound, for people."""
        return (
            f"({self.lease:g} s lease + 3 * {self.timeout:g} s timeout) * {1 + self.drift:g} = {self.reset_bound:g} s"
        )

    def _violations(self) -> Iterator[tuple[str, str]]:
        lease, pet, timeout, drift = self.lease, self.pet, self.timeout, self.drift
        if not pet > 0:
            yield "pet", f"{pet:g}: must be more than 0 s"
        if not 0 <= drift <= MOST_DRIFT:
            yield "drift", f"{drift:g}: must be from 0 to {MOST_DRIFT:g}"
        late, slow = 2 * pet, 2 * pet * (1 + drift)
        if not timeout > slow:
            sum_ = f"2 * {pet:g} s pet * {1 + drift:g} = {slow:g} s"
            yield "timeout", f"{timeout:g}: must be more than {sum_}, or one late pet resets a healthy node"
        if not lease > late:
            sum_ = f"2 * {pet:g} s pet = {late:g} s"
            yield "lease", f"{lease:g}: must be more than {sum_}, or one late renewal resets a healthy node"
        elif self.peers and not lease / 2 > 4 * pet:
            sum_ = f"2 * 4 * {pet:g} s pet = {8 * pet:g} s"
            yield "lease", f"{lease:g}: must be more than {sum_} with peers, or nodes reset before they have agreed"
        if not self.survives_close:
            yield "survives_close", "false: the device is disarmed when the agent is killed, so that no bound holds"
        if not self.resets:
            yield "resets", "false: the device only raises an alarm, so that no bound holds"
        if float("inf") in (lease, timeout):
            yield "lease, timeout", f"{lease:g}, {timeout:g}: must be finite, or no bound follows"


def sysfs_name(path: str) -> str:
    """The device's name in sysfs: ``/dev/watchdog`` is an alias of the first device."""
    name = path.rpartition("/")[2]
    return "watchdog0" if name == "watchdog" else name


class WatchdogSettings(Facts, frozen=True):
    """``watchdog`` of an AgentConfiguration; times are seconds."""

    device: Annotated[str, Meta(min_length=1)] = "/dev/watchdog"
    lease_seconds: float = 60.0
    pet_seconds: float = 5.0
    timeout_seconds: Annotated[int, Meta(ge=1, le=65535)] = 15
    """The requested timeout; devices support whole seconds only."""
    drift: Annotated[float, Meta(ge=LEAST_DRIFT)] = 0.01
    peers: PeerSettings | None = None
    """If set, the agent also pets while a strict majority of all nodes has lost the API server."""

    def timing_with(
        self, *, timeout: float | None = None, survives_close: bool = True, resets: bool = True
    ) -> WatchdogTiming:
        """The timing with a device of these properties; InvalidInput if it gives no bound."""
        return WatchdogTiming(
            lease=self.lease_seconds,
            pet=self.pet_seconds,
            timeout=self.timeout_seconds if timeout is None else timeout,
            drift=self.drift,
            survives_close=survives_close,
            resets=resets,
            peers=self.peers is not None,
        )
