"""Whether a shutdown of this host would be graceful, and what to mend if not. Pure: facts in, checks out."""

from collections import Counter
from collections.abc import Callable, Sequence

from lastcall.graceful import doctor_cluster, doctor_host, doctor_kubelet, doctor_logind, doctor_peers, doctor_watchdog
from lastcall.graceful.finding import Check, Finding, Verdict
from lastcall.host import HostFacts
from lastcall.model.base import Facts

CHECKS: dict[str, Callable[[HostFacts], Finding]] = {
    "user": doctor_host.user,
    "systemd": doctor_host.systemd,
    "logind": doctor_logind.logind,
    "shutdown": doctor_logind.shutdown,
    "configuration": doctor_logind.configuration,
    "delay-limit": doctor_logind.delay_limit,
    "drop-in": doctor_logind.drop_in,
    "lock": doctor_logind.lock,
    "other-locks": doctor_logind.other_locks,
    "targets": doctor_host.targets,
    "commands": doctor_host.commands,
    "agent": doctor_logind.agent,
    "unit": doctor_host.unit,
    "state-dir": doctor_host.state_dir,
    "runtime": doctor_host.runtime,
    "kubelet": doctor_kubelet.kubelet,
    "kubelet-state": doctor_kubelet.kubelet_state,
    "static-pods": doctor_kubelet.static_pods,
    "watchdog": doctor_watchdog.watchdog,
    "watchdog-peers": doctor_peers.watchdog_peers,
    "force-detach": doctor_cluster.force_detach,
    "fence-policies": doctor_cluster.fence_policies,
}
"""Every check by its name, in the order in which they are told: what others depend on comes first."""


class Report(Facts, frozen=True):
    """All checks; the JSON of ``lastcall doctor -o json``, which is stable."""

    checks: tuple[Check, ...]
    failures: int
    warnings: int


def examine(facts: HostFacts) -> list[Check]:
    """One check for each name in CHECKS."""
    return [_check(name, check(facts)) for name, check in CHECKS.items()]


def report(checks: Sequence[Check]) -> Report:
    """The checks with their sums."""
    count = Counter(check.verdict for check in checks)
    return Report(checks=tuple(checks), failures=count[Verdict.FAILURE], warnings=count[Verdict.WARNING])


def _check(name: str, finding: Finding) -> Check:
    return Check(name=name, verdict=finding.verdict, message=finding.message, fix=finding.fix)
