"""Keeps the watchdog and the node's Lease: renews and pets, and lets the machine be reset when it must not pet."""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from lastcall.aio import timeout, wait_first
from lastcall.errors import InvalidInput, LastcallError
from lastcall.model.duration import format_seconds
from lastcall.model.watchdog import WatchdogSettings, WatchdogTiming
from lastcall.model.watchdog_lease import WatchdogPromise
from lastcall.ports.node import Clock
from lastcall.ports.watchdog import WatchdogDevice, WatchdogLease
from lastcall.watchdog import pet_rules
from lastcall.watchdog.agreement import Agreement, find_agreement
from lastcall.watchdog.keeper_status import KeeperStatus
from lastcall.watchdog.peers import WatchdogPeers
from lastcall.watchdog.pet_rules import DeviceState, KeeperStep, LeaseState

RETRY_SECONDS = 30.0
"""Seconds between two attempts to open a device that is missing or held by another program."""

LEAVE_SECONDS = 5.0
"""How long the agent, when it ends, tries to withdraw a promise, also one that an earlier process may have left.

Its systemd unit allows 15 s.
"""

AGAIN_SECONDS = 60.0
"""Seconds between two renewals of a Lease without a promise: a cluster restored from a backup has an old Lease."""

_LEAVING_PACE = 1.0

log = logging.getLogger(__name__)


class WatchdogKeeper:
    """The watchdog of one boot of one node. It waits for the first call of ``suspend``, which may hold it back.

    With ``peers``, which the caller runs, it also pets by agreement with them.
    """

    def __init__(
        self,
        settings: WatchdogSettings,
        *,
        device: WatchdogDevice,
        lease: WatchdogLease,
        clock: Clock,
        boot_id: str,
        peers: WatchdogPeers | None = None,
        on_round: Callable[[KeeperStatus], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._device = device
        self._lease = lease
        self._clock = clock
        self._boot_id = boot_id
        self._on_round = on_round
        self._peers = peers
        if peers:
            peers.lost = self._is_api_lost
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()
        self._standing = LeaseState()
        self._armed: WatchdogTiming | None = None
        self._timeout = float("inf")
        self._held = ""
        self._leave_by: float | None = None
        self._unfit = self._stuck = self._stray = self._first_write_done = False
        self._retry_at = pet_rules.NEVER
        self._problem = self._reason = self._last_sentence = self._last_failure = ""
        self._accepted = self._failed = self._withheld = 0

    def suspend(self, why: str) -> None:
        """Withdraws the promise while the node shuts down, so that no reset disturbs it; an empty ``why`` ends that."""
        if why != self._held or not self._begun.is_set():
            self._held = why
            self._begun.set()
            self._wake.set()

    def request_stop(self) -> None:
        """Asks ``run`` to end: once the device is stopped, or after LEAVE_SECONDS if it must not be stopped by then."""
        self._leave_by = self._clock.boottime() + LEAVE_SECONDS
        self._begun.set()
        self._wake.set()

    async def run(self) -> None:
        """Runs rounds until ``request_stop``. Cancellation leaves the device running and the promise in force."""
        await self._begun.wait()
        while not self._is_over():
            self._wake.clear()
            begun = self._clock.boottime()
            await self._run_guarded_round()
            if not self._is_over():
                await wait_first(
                    self._wake.wait(), self._clock.sleep(begun + self._round_seconds - self._clock.boottime())
                )
        if self._device.is_open and self._standing.promised:
            log.warning("the promise in the Lease could not be withdrawn: the watchdog will reset this machine")

    @property
    def _round_seconds(self) -> float:
        pace = pet_rules.round_seconds(self._settings.pet_seconds, timeout=self._timeout, fit=not self._unfit)
        return pace if self._leave_by is None else min(pace, _LEAVING_PACE)

    def _is_over(self) -> bool:
        if self._leave_by is None:
            return False
        return pet_rules.next_step(self._device_state) is KeeperStep.REST or self._clock.boottime() >= self._leave_by

    # -- one round -----------------------------------------------------------------------------------------------------

    async def _run_guarded_round(self) -> None:
        """Logs an internal error, which costs one pet at most; if it recurs in every round, the machine is reset."""
        try:
            await self._run_round()
        except Exception:
            log.exception("the watchdog's round broke off")
        self._report_status()

    async def _run_round(self) -> None:
        """Takes steps until none is left, one fails, or the Lease is renewed. If not armed, then publishes why."""
        going_on = True
        while going_on:
            step = pet_rules.next_step(self._device_state)
            going_on = await self._do_step(step) and step not in (KeeperStep.REST, KeeperStep.PROMISE)
            self._pet_if_allowed()
        if not self._standing.promised and (self._reason != self._reason_not_armed() or self._is_renewal_old):
            await self._write_lease(armed=False)
            self._pet_if_allowed()

    @property
    def _is_renewal_old(self) -> bool:
        return self._clock.boottime() - self._standing.renewed >= AGAIN_SECONDS

    @property
    def _device_state(self) -> DeviceState:
        return DeviceState(
            wanted=not self._held and self._leave_by is None,
            promised=self._standing.promised,
            open=self._device.is_open,
            fit=not self._unfit,
            stuck=self._stuck,
            stray=self._stray,
        )

    async def _do_step(self, step: KeeperStep) -> bool:
        """Takes one step; returns whether it succeeded."""
        if step in (KeeperStep.TAKE_BACK, KeeperStep.PROMISE):
            return await self._write_lease(armed=step is KeeperStep.PROMISE)
        if step is KeeperStep.OPEN:
            return self._open_device()
        if step is KeeperStep.STOP:
            self._stop_device()
        return True

    async def _write_lease(self, *, armed: bool) -> bool:
        """Writes the Lease. ``sent`` is taken before the request: observers may see the renewal from then on."""
        promise = self._build_promise(armed=armed)
        nodes = self._peers.nodes if self._peers and promise.peers else None
        sent = self._clock.boottime()
        self._standing = pet_rules.state_before_write(self._standing, armed=armed, nodes=nodes)
        try:
            async with timeout(self._round_seconds / 2):
                before = await self._lease.write_promise(
                    lambda: self._with_current_token(promise), self._peers.heard_reports if self._peers else dict
                )
        except (LastcallError, TimeoutError) as error:
            self._failed += 1
            self._log_failure(str(error) or "no answer in time")
            return False
        self._accepted += 1
        self._last_failure = ""
        self._reason = promise.why
        self._standing = pet_rules.state_after_write(self._standing, armed=armed, sent=sent, nodes=nodes)
        if not self._first_write_done:
            self._first_write_done, self._stray = True, before is not None and before.boot_id == self._boot_id
        return True

    def _log_failure(self, why: str) -> None:
        """Warns once per reason, because the write is retried every few seconds."""
        log.log(logging.DEBUG if why == self._last_failure else logging.WARNING, "the watchdog's Lease: %s", why)
        self._last_failure = why

    def _build_promise(self, *, armed: bool) -> WatchdogPromise:
        if armed and self._armed:
            return WatchdogPromise.from_timing(self._boot_id, self._armed, self._peers.terms if self._peers else None)
        return WatchdogPromise(boot_id=self._boot_id, why=self._reason_not_armed())

    def _with_current_token(self, promise: WatchdogPromise) -> WatchdogPromise:
        """The promise with the current report token: an unchanged token means no report since the write before."""
        if self._peers is None or promise.peers is None:
            return promise
        return replace(promise, peers=replace(promise.peers, calm=self._peers.report_token))

    def _open_device(self) -> bool:
        if self._clock.boottime() < self._retry_at:
            return False
        try:
            info = self._device.arm(self._settings.timeout_seconds)
        except LastcallError as error:
            self._problem, self._retry_at = str(error), self._clock.boottime() + RETRY_SECONDS
            return False
        self._stray, self._problem, self._timeout = False, "", info.timeout
        try:
            self._armed = self._settings.timing_with(
                timeout=info.timeout, survives_close=info.survives_close, resets=info.resets
            )
            log.info("%s runs, with a timeout of %s", info.identity, format_seconds(info.timeout))
        except InvalidInput as error:
            self._unfit, self._problem = True, f"{info.identity}: {'; '.join(error.violations)}"
        return True

    def _stop_device(self) -> None:
        try:
            self._stuck = not self._device.disarm()
        except LastcallError as error:
            log.error("the watchdog may run on, and reset this machine: %s", error)

    def _is_api_lost(self) -> bool:
        """Whether this node reports to its peers that it has lost the API server."""
        if self._armed is None or not self._device.is_open:
            return False
        return pet_rules.is_api_lost(self._standing, report=self._armed.report_after, now=self._clock.boottime())

    def _peer_agreement(self) -> Agreement:
        """The agreement that the peers' answers give now."""
        if self._peers is None or self._armed is None:
            return Agreement(pets=False, reason="other nodes are not counted")
        now = self._clock.boottime()
        counted, reports = self._standing.counted, self._peers.reports
        return find_agreement(counted, reports, me=self._peers.me, now=now, report=self._armed.report_after)

    def _may_pet(self) -> bool:
        now, lease = self._clock.boottime(), self._settings.lease_seconds
        return pet_rules.may_pet(self._standing, lease=lease, now=now, agreed=self._peer_agreement().pets)

    def _pet_if_allowed(self) -> None:
        """Pets right after the decision, without an await in between."""
        if not self._device.is_open:
            return
        if not self._may_pet():
            self._withheld += 1
            return
        try:
            self._device.pet()
        except LastcallError as error:
            log.error("the watchdog could not be petted: %s", error)

    # -- status --------------------------------------------------------------------------------------------------------

    def _report_status(self) -> None:
        sentence = self._status_sentence()
        if sentence != self._last_sentence:
            log.info("watchdog: %s", sentence)
            self._last_sentence = sentence
        armed = self._armed if self._device.is_open and self._standing.promised else None
        self._on_round(
            KeeperStatus(
                armed=armed is not None,
                bound=armed.reset_bound if armed else 0.0,
                accepted=self._accepted,
                failed=self._failed,
                withheld=self._withheld,
                sentence=sentence,
                nodes=min((len(nodes or ()) for nodes in self._standing.counted), default=0) if armed else 0,
            )
        )

    def _status_sentence(self) -> str:
        now = self._clock.boottime()
        if not self._device.is_open and self._standing.promised:
            return "not armed: the Lease could not be written yet"
        if not self._device.is_open:
            return f"not armed: {self._reason_not_armed()}"
        if not self._standing.promised or not self._armed:
            return f"the device runs, but the Lease promises nothing: {self._reason_not_armed()}"
        if not pet_rules.may_pet(self._standing, lease=self._settings.lease_seconds, now=now):
            return self._late_sentence()
        if self._peers and self._peers.problem:
            alone = f", and other nodes are not counted: {self._peers.problem}"
        else:
            alone = ""
        return f"armed: without a renewal this machine resets itself within {self._armed.bound_arithmetic}{alone}"

    def _late_sentence(self) -> str:
        """The status when the Lease was not renewed in time."""
        if self._peers is None:
            return "the Lease could not be renewed for too long: this machine will be reset"
        agreement = self._peer_agreement()
        outcome = "this machine keeps running" if agreement.pets else "this machine will be reset"
        return f"the Lease could not be renewed for too long, and {agreement.reason}: {outcome}"

    def _reason_not_armed(self) -> str:
        if self._held:
            return self._held
        if self._leave_by is not None:
            return "the agent ends"
        return self._problem or "it is about to be armed"
