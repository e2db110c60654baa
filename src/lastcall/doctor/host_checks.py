"""The doctor's checks of the host: systemd, its shutdown targets and commands, disk and container runtime (pure)."""

import re

from lastcall.doctor.facts import HostFacts, UnknownFact
from lastcall.doctor.finding import Finding, failure, ok, unknown, warning

SYSTEMD_MIN = 245
"""Kubernetes' own tests of graceful shutdown skip older versions (kubernetes issue 107043)."""

LEGACY_FIXED = 251
"""The first release after systemd's commit adefc8789b63 of February 2022 (systemd issue 22058)."""

TARGETS = ("poweroff.target", "reboot.target", "halt.target", "kexec.target")
"""The units that logind starts at the end of a shutdown. If one is masked, logind refuses at once, without a signal."""

AGENT_UNIT = "lastcall-agent.service"

_FDSTORE_SET = 254
"""The first version of systemd that tells a service about its descriptor store ($FDSTORE)."""

_STORED = 2
"""The descriptors to store: the lock, and briefly a second one while it is replaced."""

_ROOM_BYTES = 16 * 2**20
_ROOM_FILES = 100

_PAST_LOGIND = "`systemctl poweroff --force`, `-ff` and `systemctl start poweroff.target` (reboot likewise)"


def systemd_version_number(facts: HostFacts) -> int | None:
    """The version of systemd; None if unknown."""
    found = None if isinstance(facts.systemd_version, UnknownFact) else re.match(r"v?(\d+)", facts.systemd_version)
    return int(found[1]) if found else None


def check_user(facts: HostFacts) -> Finding:
    """Whether the doctor runs as root, as the agent does: other users get other answers."""
    if facts.uid == 0:
        return ok("this is root, as the agent should be")
    return warning(
        f"uid {facts.uid} is not root: what the agent may do as root is not tried",
        "run lastcall doctor as the agent runs",
    )


def check_systemd(facts: HostFacts) -> Finding:
    """Whether systemd runs the host, in a version that is known to work."""
    number = systemd_version_number(facts)
    if isinstance(facts.systemd_version, UnknownFact):
        if not facts.booted:
            return failure(
                "systemd does not run on this host (there is no /run/systemd/system): no service announces shutdowns",
                "in a container, mount the host's /run/dbus and /run/systemd; on a host without systemd, drain the node",
            )
        return unknown(f"its version is not known: {facts.systemd_version.reason}")
    if number is None:
        return unknown(f"its version is not known: it says {facts.systemd_version!r}")
    if number < SYSTEMD_MIN:
        return warning(f"{facts.systemd_version} is older than {SYSTEMD_MIN}: delay locks may be ignored", "upgrade it")
    return ok(facts.systemd_version)


def check_targets(facts: HostFacts) -> Finding:
    """Whether logind can shut down the machine at all."""
    if isinstance(facts.targets, UnknownFact):
        return _systemd_unavailable(facts, facts.targets)
    masked = [name for name, state in facts.targets.items() if state == "masked"]
    if not masked:
        return ok(f"none of {', '.join(facts.targets)} is masked")
    return failure(
        f"{', '.join(masked)} is masked: logind refuses such a shutdown, so that only forced ones, without delay, are left",
        f"systemctl unmask {' '.join(masked)}",
    )


def check_commands(facts: HostFacts) -> Finding:
    """Which shutdown commands bypass logind."""
    number = systemd_version_number(facts)
    if number is None:
        return unknown(f"systemd's version is not known; on every version these bypass logind: {_PAST_LOGIND}")
    if number < LEGACY_FIXED:
        return warning(
            f"on systemd {number} root's `shutdown -h now`, `poweroff` and `reboot` bypass logind, as do {_PAST_LOGIND}",
            "use `systemctl poweroff` and `systemctl reboot`, or `shutdown +0`",
        )
    return ok(f"all shutdown commands go through logind but {_PAST_LOGIND}")


def check_unit(facts: HostFacts) -> Finding:
    """Whether the lock survives a restart of the agent's unit."""
    found = facts.agent_unit
    if isinstance(found, UnknownFact):
        return _systemd_unavailable(facts, found)
    if found is None:
        return ok(f"{AGENT_UNIT} is not installed: nothing to check")
    knows_store = (systemd_version_number(facts) or 0) >= _FDSTORE_SET or any(
        entry.startswith("FDSTORE=") for entry in found.environment
    )
    if found.stored_descriptors >= _STORED and knows_store:
        return ok(f"{found.name} keeps the lock in systemd's descriptor store")
    if found.stored_descriptors < _STORED and found.kill_mode in ("process", "none"):
        return ok(f"{found.name} keeps the lock with a process of its own")
    return failure(
        f"{found.name} has KillMode={found.kill_mode} and FileDescriptorStoreMax={found.stored_descriptors}"
        f"{'' if knows_store else ' and does not know its descriptor store'}: the lock would not outlive a restart of the agent",
        f"set FileDescriptorStoreMax={_STORED} and Environment=FDSTORE={_STORED} (or else KillMode=process)",
    )


def check_state_dir(facts: HostFacts) -> Finding:
    """Whether the journal has a directory with enough space."""
    place = facts.state_dir
    if isinstance(place, UnknownFact):
        return unknown(f"not known: {place.reason}")
    if not place.usable.works:
        return failure(place.usable.message, "run the agent as root, or give it another --state-dir")
    if place.free_bytes < _ROOM_BYTES:
        return failure(
            f"only {place.free_bytes // 2**10} KiB are free: the journal may not fit",
            f"make room ({_ROOM_BYTES // 2**20} MiB), or give another --state-dir",
        )
    if place.free_inodes is not None and place.free_inodes < _ROOM_FILES:
        return failure(f"the file system has room for only {place.free_inodes} files more", "remove files from it")
    if place.volatile:
        return warning(
            f"{place.usable.message}, but it is in memory: a reboot loses the reports of shutdowns",
            "give a --state-dir on a disk",
        )
    return ok(f"{place.usable.message}, {place.free_bytes // 2**20} MiB are free")


def check_runtime(facts: HostFacts) -> Finding:
    """Whether the container runtime answers, which ends the containers."""
    if isinstance(facts.runtime, UnknownFact):
        return unknown(f"not known: {facts.runtime.reason}")
    if facts.runtime.works:
        return ok(facts.runtime.message)
    fix = "start the container runtime, or name its socket by --container-runtime-endpoint"
    return failure(
        facts.runtime.message, fix if facts.uid == 0 else f"run lastcall doctor as root; if it says the same, {fix}"
    )


def _systemd_unavailable(facts: HostFacts, why: UnknownFact) -> Finding:
    if isinstance(facts.systemd_version, UnknownFact):
        return unknown("not known while systemd does not answer")
    return unknown(f"not known: {why.reason}")
