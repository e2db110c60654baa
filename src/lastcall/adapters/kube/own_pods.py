"""The pods that are bound to one node, by a watch that also the node's own identity may open."""

import contextlib
from collections.abc import Callable, Mapping
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer, WatchChange
from lastcall.adapters.kube.resources import PODS
from lastcall.errors import LastcallError
from lastcall.model.own_pods import keep_essentials, runtime_uid
from lastcall.model.pods import Pod
from lastcall.ports.node import Clock

KEPT_DELETED = 64
"""Deleted pods that stay known, the newest ones: a pod that was deleted by force, or a mirror pod, may still run."""


class OwnPods:
    """The pods with ``spec.nodeName`` of one node, while ``run`` runs.

    The requests have the field selector that Kubernetes' Node authorizer demands of a node. ``on_change`` is
    called after each change of what ``keep_essentials`` keeps, and after each list.
    """

    def __init__(
        self, client: Client, node_name: str, *, clock: Clock, random: Random, on_change: Callable[[], None]
    ) -> None:
        self._informer = Informer(
            client, PODS.with_shape(Pod), clock=clock, random=random, fields=f"spec.nodeName={node_name}"
        )
        self._on_change = on_change
        self._pods: dict[str, Pod] = {}
        self._deleted: dict[str, None] = {}
        self.was_listed = False
        """Whether the pods have been listed once, so that ``pods`` is complete as of some time."""

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The essentials of the pods by ``runtime_uid``: as last seen, also while the API server is unavailable."""
        return self._pods

    @property
    def in_sync(self) -> bool:
        """Whether ``pods`` is current, as far as a watch can tell."""
        return self.was_listed and self._informer.failure is None

    @property
    def failure(self) -> LastcallError | None:
        """Why ``pods`` may be out of date or incomplete; None while it is current, and before the first answer."""
        return self._informer.failure

    async def run(self) -> None:
        """Lists and watches without end; logs failures and retries."""
        async with contextlib.aclosing(self._informer.changes()) as changes:
            async for change in changes:
                self._apply(change)

    def _apply(self, change: WatchChange[Pod]) -> None:
        if change.kind is ChangeKind.SYNCED:
            self.was_listed = True
            self._on_change()
        elif change.new:
            uid, pod = runtime_uid(change.new), keep_essentials(change.new)
            if change.kind is ChangeKind.DELETED:
                self._forget_later(uid)
            else:
                self._deleted.pop(uid, None)
            if self._pods.get(uid) != pod:
                self._pods[uid] = pod
                self._on_change()

    def _forget_later(self, uid: str) -> None:
        self._deleted[uid] = None
        if len(self._deleted) > KEPT_DELETED:
            oldest = next(iter(self._deleted))
            del self._deleted[oldest], self._pods[oldest]
