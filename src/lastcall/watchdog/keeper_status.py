"""What the watchdog's keeper tells of itself."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class KeeperStatus:
    """What the keeper tells about itself after each round. ``armed``: the Lease may say so; ``bound`` in seconds, 0 if not.

    ``accepted`` and ``failed`` are writes of the Lease since it began, ``withheld`` rounds without a pet. ``nodes`` are those of
    which a majority may let this one live on; 0 if none are counted, or that is not certain.
    """

    armed: bool
    bound: float
    accepted: int
    failed: int
    withheld: int
    sentence: str
    nodes: int = 0
