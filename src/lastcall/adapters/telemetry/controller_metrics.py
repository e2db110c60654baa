"""The failover controller's metrics in Prometheus' exposition format.

Metrics that kube-controller-manager also counts have its names and labels, so that the same queries show both.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from lastcall import names

_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_LONG = (0.1, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600, 1800, 3600, 21600, 86400)
"""Buckets for steps, which also wait for people and machines."""


class ControllerMetrics:
    """Metrics in a registry of their own, so that two controllers in one process do not mix.

    Known label values exist from the start with 0, so that a first event after months is visible as an increase.
    """

    def __init__(
        self,
        *,
        steps: Iterable[str] = (),
        evidence: Iterable[str] = (),
        answers: Iterable[str] = (),
        reasons: Iterable[str] = (),
    ) -> None:
        registry = self._registry = CollectorRegistry()
        meaning = {name.text: name.meaning.split(": ", 1)[-1] for name in names.ALL if name.kind == "metric"}

        def gauge(name: str, *labels: str) -> Gauge:
            return Gauge(name, meaning[name], labels, registry=registry)

        def counter(name: str, *labels: str) -> Counter:
            return Counter(name, meaning[name], labels, registry=registry)

        def histogram(name: str, label: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(name, meaning[name], (label,), registry=registry, buckets=buckets)

        self._deleted = counter(names.M_FORCE_DELETES, "namespace", "reason")
        self._errors = counter(names.M_FORCE_DELETE_ERRORS, "namespace", "reason")
        self._detached = gauge(names.M_FORCED_DETACHES, "reason")
        self._steps = histogram(names.M_STEPS, "step", _LONG)
        self._in_step = gauge(names.M_STEP_NODES, "step")
        self._actions = histogram(names.M_ACTIONS, "action", _BUCKETS)
        self._evidence = counter(names.M_EVIDENCE, "kind")
        self._answers = counter(names.M_FENCE_ANSWERS, "answer")
        self._orders = counter(names.M_ORDERS, "order", "outcome")
        self._nodes = gauge(names.M_NODES, "state")
        self._not_fenced = gauge(names.M_NOT_FENCED, "reason")
        self._broken_off = counter(names.M_BROKEN_OFF)
        self._leads = gauge(names.M_LEADS)
        self._withdrawn = gauge(names.M_GUARD_WITHDRAWN)
        self._reasons = tuple(reasons)
        for order, outcome in itertools.product(("off", "on"), ("Accepted", "Failed")):
            self._orders.labels(order=order, outcome=outcome)
        for step in steps:
            self._steps.labels(step=step)
        for kind in evidence:
            self._evidence.labels(kind=kind)
        for answer in answers:
            self._answers.labels(answer=answer)

    def render_text(self) -> bytes:
        """All metrics as text/plain; version=0.0.4."""
        return generate_latest(self._registry)

    def set_guard_withdrawn(self, *, withdrawn: bool) -> None:
        """Records whether the guard's webhooks are withdrawn."""
        self._withdrawn.set(withdrawn)

    def set_status(
        self, *, leads: bool, nodes: Mapping[str, int], steps: Mapping[str, int], not_fenced: Mapping[str, int]
    ) -> None:
        """Records the current state: nodes in each state, in each step, and not fenced for each reason."""
        for reason in self._reasons:
            self._not_fenced.labels(reason=reason).set(not_fenced.get(reason, 0))
        self._leads.set(leads)
        for state, count in nodes.items():
            self._nodes.labels(state=state).set(count)
        for step, count in steps.items():
            self._in_step.labels(step=step).set(count)

    def observe_step(self, step: str, seconds: float) -> None:
        """Records how long a node was in a step."""
        self._steps.labels(step=step).observe(seconds)

    def count_evidence(self, kind: str) -> None:
        """Counts evidence of this kind that proved the end of a boot."""
        self._evidence.labels(kind=kind).inc()

    def observe_action(self, action: str, seconds: float) -> None:
        """Records how long an action took."""
        self._actions.labels(action=action).observe(seconds)

    def count_fence_answer(self, answer: str) -> None:
        """Counts an answer of a fence."""
        self._answers.labels(answer=answer).inc()

    def count_internal_error(self) -> None:
        """Counts a bug of ours that has aborted the work on a node."""
        self._broken_off.inc()

    def count_call(self, verb: str, *, namespace: str, reason: str, failed: bool) -> None:
        """Counts a call that cannot be undone."""
        if verb == "force-delete":
            labels: dict[str, Any] = {"namespace": namespace, "reason": reason}
            self._deleted.labels(**labels).inc()
            if failed:
                self._errors.labels(**labels).inc()
        elif verb == "detach" and not failed:
            self._detached.labels(reason=reason).inc()
        elif verb in ("off", "on"):
            self._orders.labels(order=verb, outcome="Failed" if failed else "Accepted").inc()
