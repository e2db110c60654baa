"""The waiting readers of a resource: a change wakes only those that it may concern.

Each kubelet of a cluster watches the pods of its own node. Without this index, each change of a pod would wake five
hundred of them. The API server's watch cache uses index triggers for the same purpose.
"""

import asyncio
from collections.abc import Mapping, Sequence

Interest = tuple[str, str] | None
"""A field and the value that it must have before or after a change of interest; None: all changes."""


class ChangeWaiters:
    """The waiting readers, in the order in which they started to wait."""

    def __init__(self) -> None:
        self._all: list[asyncio.Future[int]] = []
        self._some: dict[str, dict[str, list[asyncio.Future[int]]]] = {}

    def add(self, interest: Interest) -> "asyncio.Future[int]":
        """A future for the next change of possible interest; its result is the position in the log."""
        future = asyncio.get_running_loop().create_future()
        if interest is None:
            self._all.append(future)
        else:
            self._some.setdefault(interest[0], {}).setdefault(interest[1], []).append(future)
        return future

    def remove(self, interest: Interest, future: "asyncio.Future[int]") -> None:
        """Removes a reader that no longer waits."""
        if interest is None:
            self._all.remove(future)
            return
        field, value = interest
        self._some[field][value].remove(future)
        if not self._some[field][value]:
            del self._some[field][value]

    def wake(self, place: int, versions: Sequence[Mapping[str, str]]) -> None:
        """Wakes the readers of a change; ``versions`` are the object's fields before and after it."""
        woken, self._all = self._all, []
        for field, readers in self._some.items():
            for value in dict.fromkeys(version.get(field, "") for version in versions):
                woken += readers.pop(value, ())
        for future in woken:
            if not future.done():
                future.set_result(place)
