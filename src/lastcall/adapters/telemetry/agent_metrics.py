"""The agent's metrics in Prometheus' exposition format, from its events and its status."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from lastcall import names
from lastcall.model.shutdown import (
    JournalEvent,
    LockReleased,
    LogindAnnounced,
    PhaseEnded,
    PhaseShortened,
    PhaseStarted,
    PodEnded,
    PodOutcome,
    PodStarted,
    RuntimeAnswered,
    RuntimeSilent,
    ShutdownCancelled,
    ShutdownResumed,
    ShutdownStarted,
)

disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations; they say when this process started, which nobody asks of a shutdown


WITHDRAWAL_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
"""The histogram's bounds in seconds: a quarter of a second is usual, and no wait is longer than ``traffic.limitSeconds``."""

PROPAGATION_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""The bounds in seconds: a fast kube-proxy takes a tenth of a second, one of 5,000 nodes has been seen to take 30."""


class AgentMetrics:
    """Metrics in a registry of their own, so that two agents in one process do not mix."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        meaning = {name.text: name.meaning.split(": ", 1)[-1] for name in names.ALL if name.kind == "metric"}

        def gauge(name: str, *labels: str) -> Gauge:
            return Gauge(name, meaning[name], labels, registry=registry)

        def counter(name: str, *labels: str) -> Counter:
            return Counter(name, meaning[name], labels, registry=registry)

        self._start = gauge(names.M_START)
        self._end = gauge(names.M_END)
        self._armed = gauge(names.M_ARMED)
        self._requested = gauge(names.M_REQUESTED)
        self._granted = gauge(names.M_GRANTED)
        self._degraded = gauge(names.M_DEGRADED)
        self._logind = gauge(names.M_LOGIND)
        self._retries = counter(names.M_RETRIES)
        self._reload = gauge(names.M_RELOAD)
        self._shutdowns = counter(names.M_SHUTDOWNS, "outcome")
        self._pods = counter(names.M_PODS, "outcome")
        self._cut_short = counter(names.M_CUT_SHORT)
        self._phase = gauge(names.M_PHASE, "priority")
        self._resumed = counter(names.M_RESUMED)
        self._withdrawal = Histogram(
            names.M_WITHDRAWAL, meaning[names.M_WITHDRAWAL], buckets=WITHDRAWAL_BOUNDS, registry=registry
        )
        self._propagation = Histogram(
            names.M_PROPAGATION, meaning[names.M_PROPAGATION], buckets=PROPAGATION_BOUNDS, registry=registry
        )
        self._runtime = gauge(names.M_RUNTIME)
        self._runtime.set(1)
        self._identity = gauge(names.M_IDENTITY, "identity")
        self._how = gauge(names.M_HOW, "how")
        self._notice = gauge(names.M_NOTICE, "source")
        self._source = gauge(names.M_SOURCE, "source")
        self._warns = gauge(names.M_SOURCE_WARNING, "source")
        self._dog_armed = gauge(names.M_WATCHDOG_ARMED)
        self._dog_bound = gauge(names.M_WATCHDOG_BOUND)
        self._dog_nodes = gauge(names.M_WATCHDOG_NODES)
        self._renewals = counter(names.M_WATCHDOG_RENEWALS, "outcome")
        self._withheld = counter(names.M_WATCHDOG_WITHHELD)
        self._noticed: set[str] = set()
        self._began: ShutdownStarted | None = None
        self._phases: dict[int, float] = {}
        self._begun: dict[str, PodStarted] = {}
        self._short: set[str] = set()

    def render_text(self) -> bytes:
        """All metrics as text/plain; version=0.0.4."""
        return generate_latest(self._registry)

    def set_reload_result(self, ok: bool) -> None:
        """Records whether the configuration was (re)loaded; otherwise the old one stays."""
        self._reload.set(ok)

    def set_status(
        self, *, armed: bool, logind_reachable: bool, requested: float, granted: float | None, degraded: bool
    ) -> None:
        """Records the agent's status after a round; seconds."""
        self._armed.set(armed)
        self._logind.set(logind_reachable)
        self._requested.set(requested)
        self._granted.set(0 if granted is None else granted)
        self._degraded.set(degraded)

    def observe_withdrawal(self, seconds: float) -> None:
        """Records how long a pod took to leave its EndpointSlices."""
        self._withdrawal.observe(seconds)

    def observe_propagation(self, seconds: float) -> None:
        """Records how long the node's kube-proxy took to follow a change that had reached it."""
        self._propagation.observe(seconds)

    def set_identity(self, name: str, usable: bool) -> None:
        """Records whether an identity for the API server suffices, after a check of it."""
        self._identity.labels(identity=name).set(usable)

    def count_retry(self) -> None:
        """Counts a failed attempt to reach logind."""
        self._retries.inc()

    def set_last_shutdown(self, start: float | None, end: float | None) -> None:
        """Records the last shutdown before this boot (seconds since 1970), as the kubelet does after a restart."""
        self._start.set(start or 0)
        self._end.set(end or 0)

    def set_watchdog(self, *, armed: bool, bound: float, nodes: int) -> None:
        """Records the node's watchdog Lease after a round: seconds, and the number of nodes it depends on."""
        self._dog_armed.set(armed)
        self._dog_bound.set(bound)
        self._dog_nodes.set(nodes)

    def set_deadline_source(self, source: str, warning: str, failure: str) -> None:
        """Records one look at a source of deadlines; ``failure`` is empty if it has answered."""
        self._source.labels(source=source).set(not failure)
        self._warns.labels(source=source).set(bool(warning))

    def set_notices(self, deadlines: Mapping[str, float], *, since_boot: float) -> None:
        """Records the notices that hold: CLOCK_BOOTTIME seconds by source; ``since_boot`` makes them seconds since 1970."""
        for source in {*self._noticed, *deadlines}:
            self._noticed.add(source)
            self._notice.labels(source=source).set(deadlines[source] + since_boot if source in deadlines else 0)

    def count_renewals(self, *, accepted: int, failed: int, withheld: int) -> None:
        """Adds writes of that Lease, and withheld pets."""
        self._renewals.labels(outcome="Accepted").inc(accepted)
        self._renewals.labels(outcome="Failed").inc(failed)
        self._withheld.inc(withheld)

    def count_event(self, event: JournalEvent) -> None:
        """Counts an event of a shutdown."""
        if isinstance(event, ShutdownStarted):
            self._began = event
            self._phases.clear()
            self._begun.clear()
            self._short.clear()
            self._start.set(event.wall)
            self._set_kind(event.how)
        elif isinstance(event, LogindAnnounced):
            self._set_kind(event.how)
        elif isinstance(event, ShutdownResumed):
            self._resumed.inc()
        elif isinstance(event, RuntimeSilent | RuntimeAnswered):
            self._runtime.set(isinstance(event, RuntimeAnswered))
        elif isinstance(event, PhaseStarted):
            self._phases[event.index] = event.at
        elif isinstance(event, PhaseEnded):
            self._end_phase(event)
        elif isinstance(event, PhaseShortened):
            self._shorten_phase(event)
        elif isinstance(event, PodStarted):
            self._begun[event.uid] = event
            if event.grace < event.asked:
                self._short.add(event.uid)
        elif isinstance(event, PodEnded):
            self._end_pod(event)
        elif isinstance(event, LockReleased | ShutdownCancelled):
            self._end_shutdown(event)

    def _set_kind(self, how: str) -> None:
        self._how.clear()
        if how:
            self._how.labels(how=how).set(1)

    def _end_phase(self, event: PhaseEnded) -> None:
        if self._began and event.index in self._phases:
            priority = str(self._began.phases[event.index].priority)
            self._phase.labels(priority=priority).set(event.at - self._phases[event.index])

    def _shorten_phase(self, event: PhaseShortened) -> None:
        end = self._phases.get(event.index, event.at) + event.seconds
        for pod in self._begun.values():
            if pod.phase == event.index and end - pod.at < pod.asked:
                self._short.add(pod.uid)

    def _end_pod(self, event: PodEnded) -> None:
        self._begun.pop(event.uid, None)
        self._pods.labels(outcome=event.outcome.value).inc()
        if event.outcome in (PodOutcome.KILLED, PodOutcome.UNCONFIRMED) and event.uid in self._short:
            self._short.discard(event.uid)
            self._cut_short.inc()

    def _end_shutdown(self, event: LockReleased | ShutdownCancelled) -> None:
        self._runtime.set(1)
        self._shutdowns.labels(outcome="Completed" if isinstance(event, LockReleased) else "Cancelled").inc()
        if self._began:
            self._end.set(self._began.wall + event.at - self._began.at)
