"""Runs a worker for each held pod of the cluster: the work of the guard that leads."""

import asyncio
import logging
from collections.abc import Mapping
from typing import NamedTuple

from lastcall.aio import cancel_and_wait, wait_all, wait_first
from lastcall.guard.controller.preparation_worker import PreparationWorker, WorkerPorts
from lastcall.guard.decisions.preparation import CHECK_SECONDS
from lastcall.model.guard_policy import GuardPolicy, PreparationState
from lastcall.ports.guard_cluster import GuardPolicies

WorkerKey = tuple[str, str]
"""The uids of policy and pod."""


class _RunningWorker(NamedTuple):
    worker: PreparationWorker
    task: asyncio.Task[None]


log = logging.getLogger(__name__)


class PreparationController:
    """Has as many workers as the policies have entries; ``run`` runs while this process leads."""

    def __init__(self, ports: WorkerPorts, policies: GuardPolicies) -> None:
        self._ports = ports
        self._policies = policies
        self._workers: dict[WorkerKey, _RunningWorker] = {}
        self._undoing: set[asyncio.Task[None]] = set()
        self._known: dict[str, GuardPolicy] = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        try:
            changes = await self._policies.wait_for_change(-1)
            seen = -1
            while True:
                self._reconcile(self._policies.by_key, has_changed=changes != seen)
                seen = changes
                # A worker that has read an older state than this ends too early, and is started again.
                await wait_first(self._policies.wait_for_change(seen), self._ports.clock.sleep(CHECK_SECONDS))
                changes = self._policies.changes
        finally:
            await cancel_and_wait(*(one.task for one in self._workers.values()), *self._undoing)
            self._workers.clear()

    def _reconcile(self, policies: Mapping[tuple[str, str], GuardPolicy], *, has_changed: bool) -> None:
        current = {one.metadata.uid: one for one in policies.values()}
        for uid, policy in self._known.items():
            if uid not in current:
                self._undo_policy(policy)
        self._known = current
        for key, running in list(self._workers.items()):
            if running.task.done():
                self._forget_worker(key, running.task)
            elif has_changed:
                running.worker.wake()
        for policy in current.values():
            for held in policy.status.pods:
                self._start_worker(policy, held.uid)

    def _start_worker(self, policy: GuardPolicy, uid: str) -> None:
        key = (policy.metadata.uid, uid)
        if key in self._workers:
            return
        worker = PreparationWorker(self._ports, policy, uid)
        task = asyncio.create_task(worker.run(), name=f"guard of {policy.metadata.namespace}/{policy.name}")
        self._workers[key] = _RunningWorker(worker, task)

    def _forget_worker(self, key: WorkerKey, task: asyncio.Task[None]) -> None:
        del self._workers[key]
        if not task.cancelled() and (error := task.exception()):
            log.error("a worker of the guard has failed, and is started again", exc_info=error)

    def _undo_policy(self, policy: GuardPolicy) -> None:
        """A policy that was deleted takes its status with it: what it prepared is undone from what was last heard."""
        held = [one for one in policy.status.pods if one.prepared_at and one.state is not PreparationState.RELEASED]
        if not held:
            return
        task = asyncio.create_task(self._undo_entries(policy, [one.uid for one in held]))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    async def _undo_entries(self, policy: GuardPolicy, uids: list[str]) -> None:
        tasks = [asyncio.create_task(PreparationWorker(self._ports, policy, uid).undo()) for uid in uids]
        try:
            await wait_all(*tasks)
        finally:
            await cancel_and_wait(*tasks)
