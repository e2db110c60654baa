"""Who waits for which changes of a resource: a change wakes those whom it may concern, and costs the others nothing.

Each of a cluster's kubelets watches the pods of its own node: without this, five hundred of them would look at every
pod's change. The API server's watch cache does the same by its index triggers.
"""

import asyncio
from collections.abc import Mapping, Sequence

Interest = tuple[str, str] | None
"""A field, and the value that it must have before or after a change that concerns the reader; None: all do."""


class ChangeWaiters:
    """The readers that wait, in the order in which they came."""

    def __init__(self) -> None:
        self._all: list[asyncio.Future[int]] = []
        self._some: dict[str, dict[str, list[asyncio.Future[int]]]] = {}

    def add(self, interest: Interest) -> "asyncio.Future[int]":
        """Done at the next change that may concern the reader; its result is the change's place in the log."""
        future = asyncio.get_running_loop().create_future()
        if interest is None:
            self._all.append(future)
        else:
            self._some.setdefault(interest[0], {}).setdefault(interest[1], []).append(future)
        return future

    def remove(self, interest: Interest, future: "asyncio.Future[int]") -> None:
        """The reader does not wait any more."""
        if interest is None:
            self._all.remove(future)
            return
        field, value = interest
        self._some[field][value].remove(future)
        if not self._some[field][value]:
            del self._some[field][value]

    def wake(self, place: int, versions: Sequence[Mapping[str, str]]) -> None:
        """A change has happened; ``versions`` are the fields of the object before and after it."""
        woken, self._all = self._all, []
        for field, readers in self._some.items():
            for value in dict.fromkeys(version.get(field, "") for version in versions):
                woken += readers.pop(value, ())
        for future in woken:
            if not future.done():
                future.set_result(place)
