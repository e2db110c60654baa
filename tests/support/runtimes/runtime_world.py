"""What a contract test of a pod runtime needs, whichever runtime it is."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class World:
    """A runtime to start and end pods with."""

    name: str
    runtime: Any  # ports.PodRuntime and ports.PodStarter in one object
    directory: Path  # containers can write here, under the same path (a hostPath volume where one is needed)
    restarted: Callable[
        [], Awaitable[Any]
    ]  # a new runtime object, as after this process had been killed; replaces .runtime
    image: str = ""  # the image that has sh, sleep, cat, echo, date, kill
