"""When a node with an armed watchdog has reset itself for certain (pure): the arithmetic, and what is refused.

The agent decides to pet the watchdog only while the last renewal of its own Lease that was accepted was **sent** less than
``lease`` seconds ago on its own clock. Four times add up after that renewal:

- ``lease``: the last moment at which it can decide to pet.
- ``timeout``: so late can that pet reach the device, if the agent is stopped between the decision and the write; if it
  were later, the device would have fired already.
- ``timeout`` once more: so late the agent is killed after that pet, and the kernel itself pets a device that is closed
  without the magic character (``watchdog_release`` in ``drivers/watchdog/watchdog_dev.c``).
- ``timeout`` a third time: so late the device fires after that. Nobody else pets: the agent's next life opens the
  device only after a renewal of its own.

The observer saw the renewal later than it was sent, so to count from what he saw is safe. Clocks differ: the sum is
stretched by ``drift``.

With ``peers`` the agent decides to pet also while more than half of all nodes have reported, in answer to what it asked less
than ``report_after`` seconds ago, that the API server is lost to them. Then the sum begins when neither holds any more: half of
the nodes, or more, have reported nothing of that kind for ``report_after`` seconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.model.watchdog_peers import PeerSettings

LEAST_DRIFT, MOST_DRIFT = 0.001, 0.1
"""Of clocks that are real: none is better for certain than one part in a thousand, with what it is slewed by."""


@dataclass(frozen=True, kw_only=True)
class WatchdogTiming:
    """The settings of a watchdog, in seconds. InvalidInput if no bound follows from them, or healthy nodes would reset.

    What stands behind the rules about the device: ``Documentation/watchdog/watchdog-api.rst`` of the Linux kernel.
    """

    lease: float
    """So long after a renewal was sent the agent pets on."""
    pet: float
    """Between two pets, and between two renewals."""
    timeout: float
    """Of the device, as the driver reports it after it was set: not every driver takes every value."""
    drift: float = 0.01
    """The largest part by which the observer's clock, the node's and the device's differ: 0.01 is one in a hundred."""
    survives_close: bool = True
    """The device goes on when it is closed without the magic character, as when the agent is killed: the driver supports
    magic close, or it is set to ``nowayout``. Other devices are disarmed by a crash."""
    resets: bool = True
    """The device resets the machine, and does not only raise an alarm."""
    peers: bool = False
    """The agent pets by agreement too."""

    def __post_init__(self) -> None:
        if wrong := [f"{field}: {text}" for field, text in self._violations()]:
            raise InvalidInput("watchdog", wrong)

    @property
    def reset_bound(self) -> float:
        """So many seconds after a renewal the node has reset, if no other renewal has followed."""
        return (self.lease + 3 * self.timeout) * (1 + self.drift)

    @property
    def report_after(self) -> float:
        """After so long without a renewal an agent says that the API server is lost to it, and so long its word counts."""
        return self.lease / 2

    def reset_by(self, renewed: float, calm_since: float | None = None) -> float | None:
        """When the node has reset for certain, on the observer's clock; None if nobody can say.

        ``renewed`` is when the last renewal was seen. With ``peers`` half of the nodes that it counts, or more, have to
        have reported nothing from ``calm_since`` until then.
        """
        if not self.peers:
            return renewed + self.reset_bound
        if calm_since is None:
            return None
        petted = max(renewed + self.lease * (1 + self.drift), calm_since + self.report_after * (1 + self.drift))
        return petted + 3 * self.timeout * (1 + self.drift)

    @property
    def bound_arithmetic(self) -> str:
        """How the bound comes about, for people."""
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
    """The name of a device in sysfs: ``/dev/watchdog`` is another name of the first one."""
    name = path.rpartition("/")[2]
    return "watchdog0" if name == "watchdog" else name


class WatchdogSettings(Facts, frozen=True):
    """``watchdog`` of an AgentConfiguration; seconds."""

    device: Annotated[str, Meta(min_length=1)] = "/dev/watchdog"
    lease_seconds: float = 60.0
    pet_seconds: float = 5.0
    timeout_seconds: Annotated[int, Meta(ge=1, le=65535)] = 15
    """What the device is asked for: it knows whole seconds alone."""
    drift: Annotated[float, Meta(ge=LEAST_DRIFT)] = 0.01
    peers: PeerSettings | None = None
    """With it the agent also pets while a strict majority of all nodes has lost the API server."""

    def timing_with(
        self, *, timeout: float | None = None, survives_close: bool = True, resets: bool = True
    ) -> WatchdogTiming:
        """With a device that is like this; InvalidInput if no bound follows from it."""
        return WatchdogTiming(
            lease=self.lease_seconds,
            pet=self.pet_seconds,
            timeout=self.timeout_seconds if timeout is None else timeout,
            drift=self.drift,
            survives_close=survives_close,
            resets=resets,
            peers=self.peers is not None,
        )
