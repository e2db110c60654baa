"""Whether a shutdown of this host would be graceful, and what to fix if not: facts in, checks out (pure)."""

from collections import Counter
from collections.abc import Callable, Sequence

from lastcall.doctor import (
    cluster_checks,
    guard_checks,
    host_checks,
    identity_checks,
    kubelet_checks,
    logind_checks,
    peer_checks,
    pod_checks,
    watchdog_checks,
)
from lastcall.doctor.facts import HostFacts
from lastcall.doctor.finding import Check, CheckVerdict, Finding
from lastcall.model.base import Facts

CHECKS: dict[str, Callable[[HostFacts], Finding]] = {
    "user": host_checks.check_user,
    "systemd": host_checks.check_systemd,
    "logind": logind_checks.check_logind,
    "shutdown": logind_checks.check_shutdown,
    "configuration": logind_checks.check_configuration,
    "delay-limit": logind_checks.check_delay_limit,
    "drop-in": logind_checks.check_drop_in,
    "lock": logind_checks.check_lock,
    "other-locks": logind_checks.check_other_locks,
    "targets": host_checks.check_targets,
    "commands": host_checks.check_commands,
    "agent": logind_checks.check_agent,
    "unit": host_checks.check_unit,
    "state-dir": host_checks.check_state_dir,
    "runtime": host_checks.check_runtime,
    "kubelet": kubelet_checks.check_kubelet,
    "kubelet-state": kubelet_checks.check_kubelet_state,
    "static-pods": kubelet_checks.check_static_pods,
    "priorities": pod_checks.check_priorities,
    "identities": identity_checks.check_identities,
    "watchdog": watchdog_checks.check_watchdog,
    "watchdog-peers": peer_checks.check_watchdog_peers,
    "force-detach": cluster_checks.check_force_detach,
    "fence-policies": cluster_checks.check_fence_policies,
    "guard": guard_checks.check_guard,
}
"""Every check by its name, in output order: a check comes after those that it depends on."""


class DoctorReport(Facts, frozen=True):
    """All checks; the JSON of ``lastcall doctor -o json``, which is a stable contract."""

    checks: tuple[Check, ...]
    failures: int
    warnings: int


def run_checks(facts: HostFacts) -> list[Check]:
    """Runs every check in CHECKS."""
    return [_to_check(name, check(facts)) for name, check in CHECKS.items()]


def build_report(checks: Sequence[Check]) -> DoctorReport:
    """The checks with the counts of failures and warnings."""
    count = Counter(check.verdict for check in checks)
    return DoctorReport(
        checks=tuple(checks), failures=count[CheckVerdict.FAILURE], warnings=count[CheckVerdict.WARNING]
    )


def _to_check(name: str, finding: Finding) -> Check:
    return Check(name=name, verdict=finding.verdict, message=finding.message, fix=finding.fix)
