"""When a kubelet last wrote to the API server, read from the store, and how long it had been silent before."""

from typing import NamedTuple

from lastcall.model.snapshot import NODE_LEASES
from lastcall.ports.node import Clock
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredChange

_LEASES = "leases.coordination.k8s.io"


class KubeletContact(NamedTuple):
    """``silence`` is the longest that had been over at ``at`` or shortly before."""

    at: float
    silence: float


LATELY = 15.0
"""Seconds for which a silence that is over excuses who acts on it: who looks, and then acts, hears of its end too late."""


class KubeletContacts:
    """Of all nodes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._clock = clock
        self._heard: dict[str, list[KubeletContact]] = {}
        before = store.on_change

        def hear(change: StoredChange) -> None:
            before(change)
            key: StorageKey = change.new.key
            if key.resource == _LEASES and key.namespace == NODE_LEASES:
                self._record_renewal(key.name)

        store.on_change = hear

    def silence(self, node: str) -> float:
        """Seconds since it was heard of."""
        found = self._heard.get(node)
        return self._clock.boottime() - found[-1].at if found else float("inf")

    def longest_recent_silence(self, node: str) -> float:
        """The longest silence that lasts, or that was over a moment ago."""
        now, found = self._clock.boottime(), self._heard.get(node, [])
        return max([self.silence(node), *(one.silence for one in found if one.at >= now - LATELY)])

    def _record_renewal(self, node: str) -> None:
        now, found = self._clock.boottime(), self._heard.setdefault(node, [])
        found.append(KubeletContact(now, now - found[-1].at if found else 0.0))
        del found[:-8]
