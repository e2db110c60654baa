"""The GuardPolicies of a cluster, kept up to date by a watch."""

from collections.abc import Mapping
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import GUARD_POLICIES
from lastcall.aio import ChangeCounter
from lastcall.model.guard_policy import GuardPolicy
from lastcall.ports.node import Clock


class KubeGuardPolicies:
    """``ports.guard_cluster.GuardPolicies``, as long as ``run`` runs. Needs list and watch on guardpolicies."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._informer = Informer(client, GUARD_POLICIES.with_shape(GuardPolicy), clock=clock, random=random)
        self._changes = ChangeCounter(-1)

    @property
    def by_key(self) -> Mapping[tuple[str, str], GuardPolicy]:
        """``GuardPolicies.by_key``."""
        return {(key.namespace, key.name): policy for key, policy in self._informer.objects.items()}

    @property
    def changes(self) -> int:
        """``GuardPolicies.changes``."""
        return self._changes.count

    async def wait_for_change(self, seen: int) -> int:
        """``GuardPolicies.wait_for_change``."""
        return await self._changes.wait_for_change(seen)

    async def run(self) -> None:
        """Follows the policies without end."""
        async for change in self._informer.changes():
            if self._changes.count >= 0 or change.kind is ChangeKind.SYNCED:
                self._changes.add()
