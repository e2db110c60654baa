"""One candidate in a leader election by Lease: acquires, renews and releases it, and runs work while it leads."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.resources import LEASES
from lastcall.aio import cancel_and_wait, timeout, wait_any
from lastcall.errors import AlreadyExists, Conflict, LastcallError, NotFound, TimedOut
from lastcall.model import leadership
from lastcall.model.leadership import (
    JITTER,
    NEVER,
    VACANT,
    ElectionLease,
    ElectionStep,
    ElectionTerms,
    LeaseRecord,
    ObservedLease,
)
from lastcall.ports.node import Clock

_SOON = 0.01
"""The shortest wait in seconds, when the time to wait for is this close."""

log = logging.getLogger(__name__)

_LEASES = LEASES.with_shape(ElectionLease)

Work = Callable[[], Coroutine[Any, Any, None]]


class LeaderElector:
    """``identity`` must be unique to this process: a restarted one needs another.

    Needs the verbs get, create and patch on this Lease. Requests of ``client`` must not queue behind other requests.
    """

    def __init__(
        self,
        client: Client,
        lease: ObjectKey,
        identity: str,
        *,
        clock: Clock,
        random: Random,
        terms: ElectionTerms | None = None,
    ) -> None:
        self._client = client
        self._lease = lease
        self._identity = identity
        self._clock = clock
        self._random = random
        self._terms = terms or ElectionTerms()
        self._seen: ObservedLease | None = None
        self._until = NEVER
        self._asked = False
        self._turns = asyncio.Lock()

    @property
    def leading_until(self) -> float:
        """Boottime until which this process may act as the leader; NEVER if it does not lead.

        No other candidate leads before that, even if the API server is unreachable, or this process is suspended. So
        compare it with the clock right before an irreversible step, and end longer steps by then.
        """
        return self._until

    @property
    def sole_until(self) -> float:
        """Boottime at which the lease expires: no other candidate leads before, though we may begin no step."""
        return self._until + self._terms.lease - self._terms.renew

    @property
    def last_renewal(self) -> float:
        """Boottime at which the last successful renewal was sent; NEVER if we do not lead."""
        return self._until - self._terms.renew

    @property
    def leads(self) -> bool:
        """Whether this process may act as the leader now."""
        return self._clock.boottime() < self._until

    @property
    def holder(self) -> str:
        """The holder when the lease was last read or written; empty if none, or unknown."""
        holder = self._seen.lease.holder if self._seen and self._seen.lease else ""
        return "" if holder == VACANT else holder

    async def confirm_leading(self) -> bool:
        """Renews the lease now, if we lead, and returns whether the server confirmed it; uses no cache.

        Concurrent callers share renewals: the first one renews for itself, the next one for all who called before it is
        sent. Raises TimedOut or the API's error if the answer is unknown; we still lead until ``leading_until``, but
        without confirmation.
        """
        begun = self._clock.boottime()
        if not self.leads:
            return False
        try:
            async with timeout(self._attempt_seconds()):
                await self._acquire_or_renew(asked=begun)
        except TimeoutError:
            raise TimedOut(f"lease {self._lease.namespace}/{self._lease.name}: no answer in time") from None
        return self._until >= begun + self._terms.renew

    async def lead(self, work: Work) -> None:
        """Runs ``work`` whenever we lead, cancels it when leadership ends, and starts it again in the next term.

        Returns when ``work`` has ended by itself, and raises what it raises. Then, and on cancellation, it releases the
        lease after ``work`` has ended, so that the next leader need not wait for the lease to expire.
        """
        try:
            ended = False
            while not ended:
                await self._wait_until_leading()
                log.info("%s leads by lease %s/%s", self._identity, *self._lease)
                ended = await self._run_while_leading(work)
        finally:
            if self._asked:
                await self._release_lease()

    # -- a term --------------------------------------------------------------------------------------------------------

    async def _wait_until_leading(self) -> None:
        while not await self._try_acquire_or_renew():
            await self._clock.sleep(self._retry_seconds())

    def _retry_seconds(self) -> float:
        """Seconds until the next attempt: client-go's pause, but no longer than until the lease may be taken."""
        pause = self._terms.retry * (1 + JITTER * self._random.random())
        left = leadership.takeover_at(self._seen, self._terms) - self._clock.boottime() if self._seen else 0.0
        return min(pause, max(left, _SOON)) if left > 0 else pause

    async def _run_while_leading(self, work: Work) -> bool:
        """Runs ``work``; True if it ended by itself, False if leadership was lost."""
        working = asyncio.create_task(work(), name=f"leading {self._lease.name}")
        keeping = asyncio.create_task(self._keep_renewing(), name=f"renewing {self._lease.name}")
        try:
            await wait_any(working, keeping)
            ended = working.done()
        finally:
            try:
                await cancel_and_wait(working)  # renewals go on until it has ended
            finally:
                await cancel_and_wait(keeping)
        if ended:
            working.result()
            return True
        keeping.result()
        self._until = NEVER
        log.warning("%s leads no more by lease %s/%s", self._identity, *self._lease)
        return False

    async def _keep_renewing(self) -> None:
        """Renews until renewals have failed for too long, or another candidate holds the lease."""
        while True:
            left = self._until - self._clock.boottime()
            await self._clock.sleep(min(self._terms.retry, left))
            if not self.leads or not await self._try_acquire_or_renew():
                return

    async def _release_lease(self) -> None:
        self._until = NEVER
        try:
            async with timeout(self._terms.renew / 2):
                while not await self._try_release():
                    pass
        except (LastcallError, TimeoutError) as error:
            log.warning("lease %s/%s is not released and has to run out: %s", *self._lease, str(error) or "no answer")

    async def _try_release(self) -> bool:
        """Releases the lease; False if it has changed meanwhile, by a renewal that was under way."""
        await self._read_lease()
        lease = self._seen.lease if self._seen else None
        if lease is None or lease.holder != self._identity:
            return True
        try:
            await self._patch_lease(lease, leadership.release_record(lease, wall=self._clock.wall()))
        except Conflict:
            return False
        except NotFound:
            return True
        log.info("%s has released lease %s/%s", self._identity, *self._lease)
        return True

    # -- one attempt ---------------------------------------------------------------------------------------------------

    async def _try_acquire_or_renew(self) -> bool:
        """Acquires or renews the lease if allowed; whether we lead. Errors are logged; the next attempt follows."""
        try:
            async with timeout(self._attempt_seconds()):
                await self._acquire_or_renew()
        except (LastcallError, TimeoutError) as error:
            log.warning("lease %s/%s: %s", *self._lease, str(error) or "no answer in time")
        return self.leads

    def _attempt_seconds(self) -> float:
        """Seconds for one attempt: few enough that a dead connection leaves time for another one."""
        left = self._until - self._clock.boottime()
        return min(self._terms.renew / 2, left) if left > 0 else self._terms.renew / 2

    async def _acquire_or_renew(self, *, asked: float | None = None) -> None:
        """``asked``: a renewal that was sent later is confirmation enough, and nothing is sent."""
        async with self._turns:
            if asked is not None and self.leads and self._until > asked + self._terms.renew:
                return
            if not self.leads:
                await self._read_lease()
            if not await self._take_step():
                await self._read_lease()
                await self._take_step()

    async def _read_lease(self) -> None:
        try:
            lease = await self._client.get(_LEASES, self._lease.name, namespace=self._lease.namespace)
        except NotFound:
            lease = None
        self._seen = leadership.observe_lease(self._seen, lease, self._clock.boottime())

    async def _take_step(self) -> bool:
        """Writes the next step; False if the lease has changed since it was read."""
        assert self._seen is not None
        now = self._clock.boottime()
        step = leadership.decide(
            self._seen, identity=self._identity, leading_until=self._until, terms=self._terms, now=now
        )
        if step is ElectionStep.LOST:
            self._until = NEVER
        if step in (ElectionStep.LOST, ElectionStep.WAIT):
            return True
        try:
            await (
                self._create_vacant_lease() if step is ElectionStep.MAKE else self._hold_lease(self._seen.lease, now)
            )
        except (Conflict, NotFound, AlreadyExists):
            return False
        return True

    async def _hold_lease(self, lease: ElectionLease | None, sent: float) -> None:
        """``sent`` counts, not the time of the answer: other candidates may have read the record ever since."""
        record = leadership.holder_record(lease, identity=self._identity, terms=self._terms, wall=self._clock.wall())
        self._asked = True
        made = await (self._patch_lease(lease, record) if lease else self._create_lease(record))
        self._seen = ObservedLease(made, self._clock.boottime())
        self._until = sent + self._terms.renew

    async def _create_vacant_lease(self) -> None:
        made = await self._create_lease(leadership.vacant_record(terms=self._terms, wall=self._clock.wall()))
        self._seen = ObservedLease(made, self._clock.boottime())

    async def _create_lease(self, record: LeaseRecord) -> ElectionLease:
        wanted = {"metadata": {"name": self._lease.name}, "spec": record}
        return await self._client.create(_LEASES, wanted, namespace=self._lease.namespace)

    async def _patch_lease(self, lease: ElectionLease, record: LeaseRecord) -> ElectionLease:
        wanted = {"metadata": {"resourceVersion": lease.metadata.resource_version}, "spec": record}
        return await self._client.patch(_LEASES, self._lease.name, wanted, namespace=self._lease.namespace)
