"""Accumulates probe results against their thresholds (pure; ``pkg/kubelet/prober/worker.go``)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall.model import decoding
from lastcall.model.pods import LifecycleHandler

KINDS = {"startupProbe": "Startup", "livenessProbe": "Liveness", "readinessProbe": "Readiness"}


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One probe of a container: seconds and thresholds. ``grace`` overrides the pod's termination grace period."""

    kind: str
    handler: LifecycleHandler
    delay: float = 0.0
    period: float = 10.0
    timeout: float = 1.0
    successes: int = 1
    failures: int = 3
    grace: int | None = None


def probes_of(container: Object) -> Iterator[Probe]:
    """The probes of a container. InvalidInput if one cannot be parsed."""
    for field, kind in KINDS.items():
        if said := container.get(field):
            yield _parse_probe(kind, said)


def _parse_probe(kind: str, said: Mapping[str, Any]) -> Probe:
    handler = {name: value for name, value in said.items() if name in ("exec", "httpGet", "tcpSocket")}
    return Probe(
        kind=kind,
        handler=decoding.convert(handler, LifecycleHandler, f"{kind.lower()}Probe"),
        delay=said.get("initialDelaySeconds", 0),
        period=said.get("periodSeconds", 10),
        timeout=said.get("timeoutSeconds", 1),
        successes=said.get("successThreshold", 1),
        failures=said.get("failureThreshold", 3),
        grace=said.get("terminationGracePeriodSeconds"),
    )


@dataclass(frozen=True)
class ProbeStreak:
    """A number of equal results in a row. ``verdict`` is None until a threshold has been reached once."""

    ok: bool = False
    length: int = 0
    verdict: bool | None = None

    def with_result(self, ok: bool, probe: Probe) -> "ProbeStreak":
        """The streak after one more result."""
        length = self.length + 1 if self.length and self.ok == ok else 1
        reached = length >= (probe.successes if ok else probe.failures)
        return replace(self, ok=ok, length=length, verdict=ok if reached else self.verdict)
