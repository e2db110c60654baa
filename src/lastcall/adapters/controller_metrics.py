"""The failover controller's metrics: from what it tells to Prometheus' exposition format.

What kube-controller-manager counts too has its names and labels, so that the same queries show who has done it.
"""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lastcall import names

_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class ControllerMetrics:
    """A registry of its own: two controllers in one process do not mix."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        meaning = {name.text: name.meaning.split(": ", 1)[-1] for name in names.ALL if name.kind == "metric"}

        def gauge(name: str, *labels: str) -> Gauge:
            return Gauge(name, meaning[name], labels, registry=registry)

        def counter(name: str, *labels: str) -> Counter:
            return Counter(name, meaning[name], labels, registry=registry)

        self._deleted = counter(names.M_FORCE_DELETES, "namespace", "reason")
        self._errors = counter(names.M_FORCE_DELETE_ERRORS, "namespace", "reason")
        self._detached = gauge(names.M_FORCED_DETACHES, "reason")
        self._steps = Histogram(names.M_STEPS, meaning[names.M_STEPS], ("step",), registry=registry, buckets=_BUCKETS)
        self._evidence = counter(names.M_EVIDENCE, "kind")
        self._orders = counter(names.M_ORDERS, "order", "outcome")
        self._nodes = gauge(names.M_NODES, "state")
        self._leads = gauge(names.M_LEADS)

    def text(self) -> bytes:
        """All of them as text/plain; version=0.0.4."""
        return generate_latest(self._registry)

    def status(self, *, leads: bool, nodes: Mapping[str, int]) -> None:
        """As it is now; ``nodes``: how many are in each state."""
        self._leads.set(leads)
        for state, count in nodes.items():
            self._nodes.labels(state=state).set(count)

    def stepped(self, step: str, seconds: float) -> None:
        """A step was carried out."""
        self._steps.labels(step=step).observe(seconds)

    def learned(self, kind: str) -> None:
        """A fence has answered."""
        self._evidence.labels(kind=kind).inc()

    def acted(self, verb: str, *, namespace: str, reason: str, failed: bool) -> None:
        """A call that cannot be undone is over."""
        if verb == "force-delete":
            labels: dict[str, Any] = {"namespace": namespace, "reason": reason}
            self._deleted.labels(**labels).inc()
            if failed:
                self._errors.labels(**labels).inc()
        elif verb == "detach" and not failed:
            self._detached.labels(reason=reason).inc()
        elif verb in ("off", "on"):
            self._orders.labels(order=verb, outcome="Failed" if failed else "Accepted").inc()
