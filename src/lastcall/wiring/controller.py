"""Connects the failover controller to its environment: the process, its signals, its status pages and the cluster."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import SystemRandom

import msgspec

from lastcall.adapters.fencing.fence_agent import DIRECTORIES, FenceAgents
from lastcall.adapters.fencing.policy_fences import PolicyFences
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.drain_cluster import KubeDrainCluster
from lastcall.adapters.kube.failover_cluster import COMPONENT, KubeCluster
from lastcall.adapters.kube.https_transport import HttpsTransport, TransportLimits
from lastcall.adapters.kube.informer import ObjectKey
from lastcall.adapters.kube.leader_election import LeaderElector
from lastcall.adapters.telemetry.controller_metrics import ControllerMetrics
from lastcall.adapters.telemetry.status_server import TEXT, alive_answer, serve_status
from lastcall.adapters.webhook.guard_webhooks import KubeGuardWebhooks
from lastcall.aio import wait_first
from lastcall.drain.execution.balancer_mark_remover import BalancerMarkRemover
from lastcall.failover.controller.event_writer import EventWriter
from lastcall.failover.controller.failover_controller import (
    CONCURRENCY,
    ControllerPorts,
    ControllerStatus,
    FailoverController,
)
from lastcall.failover.decisions.case_facts import ControllerTerms
from lastcall.failover.evidence.proofs import ProofKind, power_of
from lastcall.failover.limits.storms import Limit
from lastcall.failover.reporting import audit, event_texts, peer_contact
from lastcall.failover.reporting.controller_events import (
    CallReported,
    FencerAnswered,
    FencingBlocked,
    Happening,
    LeadershipEnded,
    NodeSettled,
    ReconcilerFailed,
    StepDecided,
    StepExecuted,
)
from lastcall.failover.reporting.progress import Progress
from lastcall.failover.reporting.stages import Stage
from lastcall.guard.controller.withdrawal_controller import WithdrawalController
from lastcall.guard.decisions.webhook_withdrawal import DEFAULT_SECONDS
from lastcall.model.fence_policy import FailoverMode
from lastcall.model.observed import WatchedNode
from lastcall.model.power import PowerState
from lastcall.names import SYSTEM_NAMESPACE
from lastcall.ports.node import Clock
from lastcall.wiring.instance import instance_identity

log = logging.getLogger(__name__)
audit_log = logging.getLogger("lastcall.audit")


@dataclass(frozen=True, kw_only=True)
class ControllerSettings:
    """The command line's settings. ``metrics`` is host and port, None for no status page."""

    kubeconfig: str = ""
    """Empty: kubectl's rules apply, then the pod's own service account."""
    context: str = ""
    metrics: tuple[str, int] | None = None
    namespace: str = SYSTEM_NAMESPACE
    """lastcall's own namespace, of its Lease and its Secrets."""
    mode: FailoverMode = FailoverMode.ENFORCE
    detach: bool = False
    concurrency: int = CONCURRENCY
    agents: Sequence[str] = DIRECTORIES
    guard_withdrawal: float = DEFAULT_SECONDS
    """Seconds without a ready guard after which its webhooks are withdrawn; infinity for never."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class FailoverMetrics:
    """The metrics of one controller; ``record`` is a listener."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._progress = Progress()
        self._held: dict[str, str] = {}
        """What holds back the fencing of each lost node, by node name."""
        self._metrics = ControllerMetrics(
            steps=[one.value for one in Stage],
            evidence=[one.value for one in ProofKind],
            answers=[one.value for one in PowerState],
            reasons=[*(one.value for one in Limit), event_texts.FENCERS],
        )

    def record(self, happening: Happening) -> None:
        """Updates the metrics for one event."""
        measured = self._progress.handle_event(happening, self._clock.boottime())
        for stage, seconds in measured.spent:
            self._metrics.observe_step(stage.value, seconds)
        for kind in measured.kinds:
            self._metrics.count_evidence(kind.value)
        match happening:
            case StepDecided(node=node) | FencingBlocked(node=node):
                self._held[node] = event_texts.holding_limit(happening)
            case NodeSettled(node=node):
                self._held.pop(node, None)
            case LeadershipEnded():
                self._held.clear()
            case StepExecuted(step=step, seconds=seconds):
                self._metrics.observe_action(type(step).__name__, seconds)
            case FencerAnswered(fact=fact):
                self._metrics.count_fence_answer(power_of(fact).value)
            case ReconcilerFailed():
                self._metrics.count_internal_error()
            case CallReported(ended=float(), gone=False, verb=verb, namespace=namespace, reason=reason, error=error):
                self._metrics.count_call(
                    verb, namespace=namespace, reason=reason.value if reason else "", failed=bool(error)
                )

    def render_metrics(self, status: ControllerStatus, *, withdrawn: bool = False) -> bytes:
        """All metrics with their current values, as text/plain; version=0.0.4.

        ``withdrawn``: whether the guard's webhooks are.
        """
        nodes = {"All": status.nodes, "InTrouble": status.in_trouble, "Marked": status.marked}
        steps = {stage.value: count for stage, count in self._progress.nodes_by_stage.items()}
        held = Counter(self._held.values())
        self._metrics.set_guard_withdrawn(withdrawn=withdrawn)
        self._metrics.set_status(leads=status.leads, nodes=nodes, steps=steps, not_fenced=held)
        return self._metrics.render_text()


class ControllerProgram:
    """The controller as a process (``run_controller``), or within another one (``run_until_cancelled``)."""

    def __init__(self, settings: ControllerSettings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._failover_metrics = FailoverMetrics(self._clock)
        self._me = instance_identity(settings.environ)
        access = kubeconfig.find_access(
            self._clock, settings.environ, kubeconfig=settings.kubeconfig, context=settings.context
        )
        self._http = HttpsTransport(
            access.endpoint, access.credentials, limits=TransportLimits(connections=settings.concurrency + 14)
        )
        random = SystemRandom()
        self._cluster = KubeCluster(self._http, self._clock, random, instance=self._me)
        urgent = self._cluster.health_tracking_client(self._http.urgent)
        self._election = LeaderElector(
            urgent, ObjectKey(settings.namespace, COMPONENT), self._me, clock=self._clock, random=random
        )
        client = Client(self._http, manager=COMPONENT)
        fences = PolicyFences(
            client,
            settings.namespace,
            clock=self._clock,
            environ=settings.environ,
            agents=FenceAgents(settings.agents),
        )
        self._event_writer = EventWriter(self._cluster, self._clock, lambda: self.controller.is_removing)
        webhooks = KubeGuardWebhooks(client, self._clock, component=COMPONENT, instance=self._me)
        self._withdrawal = WithdrawalController(webhooks, self._clock, after=settings.guard_withdrawal)
        self._mark_remover = BalancerMarkRemover(
            KubeDrainCluster(client, self._clock, self._me), self._list_nodes, self._clock
        )
        self.controller = FailoverController(
            ControllerPorts(clock=self._clock, cluster=self._cluster, leadership=self._election, fences=fences),
            ControllerTerms(me=self._me, mode=settings.mode, detach=settings.detach),
            listeners=[self._write_audit, self._failover_metrics.record, self._event_writer.handle_event],
            concurrency=settings.concurrency,
        )

    async def run(self) -> None:
        """Runs until SIGTERM or SIGINT."""
        gc.collect()
        gc.freeze()  # a collection during a failover then skips what was imported: it held all calls up for 20 to 50 ms
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stopped.set)
        await wait_first(stopped.wait(), self.run_until_cancelled())

    async def run_until_cancelled(self) -> None:
        """Runs until cancelled, then releases the leader election lease."""
        log.info("this is %s", self._me)
        try:
            async with self._status_page():
                await wait_first(
                    self._election.lead(self._lead),
                    self.controller.observe(),
                    self._event_writer.run(),
                )
        finally:
            self._http.close()

    async def _lead(self) -> None:
        await wait_first(self.controller.act(), self._withdrawal.run(), self._mark_remover.run())

    def _list_nodes(self) -> list[WatchedNode]:
        return [tracked.node for tracked in self.controller.observing.tracked_nodes.values()]

    # -- status pages --------------------------------------------------------------------------------------------------

    def _write_audit(self, happening: Happening) -> None:
        entry = audit.audit_entry(happening, by=self._me, wall=self._clock.wall(), now=self._clock.boottime())
        if entry:
            audit_log.info("%s", msgspec.json.encode(entry).decode())

    def _status_page(self) -> contextlib.AbstractAsyncContextManager[None]:
        paths = {
            "/metrics": self._metrics_page,
            "/healthz": alive_answer,
            "/readyz": self._readiness_page,
            "/failover": self._failover_page,
        }
        return serve_status(paths, self._settings.metrics, private=("/failover",))

    def _metrics_page(self) -> tuple[int, str, bytes]:
        return (
            200,
            "text/plain; version=0.0.4; charset=utf-8",
            self._failover_metrics.render_metrics(self.controller.status, withdrawn=self._withdrawal.is_withdrawn),
        )

    def _readiness_page(self) -> tuple[int, str, bytes]:
        """Ready means that its view of the cluster is current, whether or not it is the leader."""
        status = self.controller.status
        trouble = self._cluster.watch_trouble or (f"waiting for {status.waiting_for}" if status.waiting_for else "")
        sentence = trouble or ("it leads" if status.leads else f"{self._election.holder or 'nobody'} leads")
        return 503 if trouble else 200, TEXT, f"{sentence}\n".encode()

    def _failover_page(self) -> tuple[int, str, bytes]:
        """One line for each node in trouble, with its last contact with peers."""
        lines = [
            f"{one.name}: {one.sentence}{self._heard_by_others_text(one.name)}\n" for one in self.controller.reconcilers
        ]
        return 200, TEXT, "".join(lines).encode() or b"no node is in trouble, or another controller leads\n"

    def _heard_by_others_text(self, name: str) -> str:
        tracked = self.controller.observing.tracked_nodes.get(name)
        said = (
            peer_contact.recent_peer_contact(tracked.seen.boot, tracked.seen.all_facts(), self._clock.boottime())
            if tracked
            else ""
        )
        return f"; {said}" if said else ""


async def run_controller(settings: ControllerSettings) -> None:
    """Runs ``lastcall controller``."""
    await ControllerProgram(settings).run()
