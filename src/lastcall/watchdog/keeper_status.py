"""The status that the watchdog's keeper reports."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KeeperStatus:
    """The keeper's status after each round.

    ``armed``: whether the Lease may say so; ``bound`` is the reset bound in seconds, 0 if not armed. ``accepted`` and
    ``failed`` count writes of the Lease since the start, ``withheld`` rounds without a pet. ``nodes`` is the number of
    nodes whose majority may keep this one alive; 0 if none are counted or their number is uncertain.
    """

    armed: bool
    bound: float
    accepted: int
    failed: int
    withheld: int
    sentence: str
    nodes: int = 0
