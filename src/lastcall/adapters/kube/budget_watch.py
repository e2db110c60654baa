"""``ports.drain.BudgetWatch``: one watch of all PodDisruptionBudgets."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ChangeKind, Informer
from lastcall.adapters.kube.resources import BUDGETS
from lastcall.aio import ChangeCounter, wait_first
from lastcall.errors import ApiNotPermitted
from lastcall.model.budgets import Budget
from lastcall.ports.node import Clock

_BUDGETS = BUDGETS.with_shape(Budget)

_LOOK_SECONDS = 1.0
"""Between two looks at whether the watch is permitted."""


class KubeBudgetWatch:
    """Needs list and watch on poddisruptionbudgets."""

    def __init__(self, client: Client, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._informer = Informer(client, _BUDGETS, clock=clock, random=random)
        self._changes = ChangeCounter()
        self._is_listed = False

    @property
    def is_current(self) -> bool:
        """``BudgetWatch.is_current``."""
        return self._is_listed and self._informer.failure is None

    @property
    def budgets(self) -> Mapping[str, Sequence[Budget]]:
        """``BudgetWatch.budgets``."""
        found: dict[str, list[Budget]] = defaultdict(list)
        for key, budget in self._informer.objects.items():
            found[key.namespace].append(budget)
        return found

    async def wait_for_change(self, seen: int) -> int:
        """``BudgetWatch.wait_for_change``."""
        return await self._changes.wait_for_change(seen)

    async def run(self) -> None:
        """``BudgetWatch.run``."""
        await wait_first(self._follow(), self._wait_until_forbidden())

    async def _follow(self) -> None:
        async for change in self._informer.changes():
            if change.kind is ChangeKind.SYNCED:
                self._is_listed = True
            self._changes.add()

    async def _wait_until_forbidden(self) -> None:
        """One warning about a right that is missing is enough."""
        while not isinstance(self._informer.failure, ApiNotPermitted):
            await self._clock.sleep(_LOOK_SECONDS)
