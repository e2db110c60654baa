"""The doctor's checks of logind: the delay limit, the locks, a shutdown under way, and the agent (pure)."""

import math
from collections.abc import Iterator

from lastcall.doctor.facts import HostFacts, LogindState, UnknownFact
from lastcall.doctor.finding import Finding, failure, ok, unknown, warning
from lastcall.doctor.host_checks import AGENT_UNIT, systemd_version_number
from lastcall.errors import InvalidInput
from lastcall.graceful import config, delay_limit
from lastcall.graceful.config import AgentConfig
from lastcall.model import duration
from lastcall.model.shutdown import ShutdownMode
from lastcall.names import KUBELET_LOCK_WHO, LOCK_WHO, LOGIND_DROP_IN
from lastcall.ports.node import Inhibitor

SILENT = "not known while logind does not answer"

_LAST_WITHOUT_INFINITY = 252
"""The last version that fails to power off (EOVERFLOW) if the limit is infinity; 257 is known to work."""

_BLOCKS_OBEYED = 257
"""The first version in which block locks also delay root's shutdowns (systemd's NEWS)."""


def find_lock(who: str, state: LogindState) -> Inhibitor | None:
    """The delay lock on shutdown with this ``who``; None if there is none."""
    return next((lock for lock in _shutdown_locks(state) if lock.who == who and lock.mode == "delay"), None)


def requested_seconds(facts: HostFacts) -> int | None:
    """The seconds that the configuration asks for; None if unknown."""
    settings = _read_settings(facts)
    return settings.requested_seconds if isinstance(settings, AgentConfig) else None


def check_logind(facts: HostFacts) -> Finding:
    """Whether logind answers, which announces shutdowns."""
    if not isinstance(facts.logind, UnknownFact):
        return ok("it answers")
    if not facts.booted and isinstance(facts.systemd_version, UnknownFact):
        return failure("there is none without systemd", "see the line on systemd")
    return failure(f"it does not answer: {facts.logind.reason}", "look at `systemctl status dbus systemd-logind`")


def check_shutdown(facts: HostFacts) -> Finding:
    """Whether a shutdown is scheduled or under way."""
    if isinstance(facts.logind, UnknownFact):
        return unknown(SILENT)
    kind = facts.logind.scheduled or "shutdown"
    if facts.logind.preparing:
        return warning(f"a {kind} is under way: some of this will look different afterwards", "wait for its end")
    if facts.logind.scheduled:
        return warning(f"a {kind} is scheduled", "`shutdown -c` cancels it")
    return ok("none is scheduled or under way")


def check_configuration(facts: HostFacts) -> Finding:
    """Whether the agent would accept the configuration, and what it asks for."""
    settings = _read_settings(facts)
    if isinstance(settings, UnknownFact):
        return unknown(f"none: {settings.reason}", "name the agent's with --config FILE")
    if isinstance(settings, InvalidInput):
        return failure("; ".join(str(settings).splitlines()), "correct it: the agent does not start with it")
    if not settings.is_enabled:
        return warning(
            f"{settings.kind} asks for no time: a shutdown would cut all pods off at once",
            "set shutdownGracePeriod, or shutdownGracePeriodByPodPriority",
        )
    asks = f"{settings.kind} asks for {duration.format_duration(settings.requested_seconds * duration.SECOND)}"
    if settings.mode is ShutdownMode.OBSERVE:
        return warning(f"{asks}, but mode is Observe: no pod would be ended", "set mode: Enforce")
    if settings.warnings:
        return warning(f"{asks}, but: {'; '.join(settings.warnings)}", "see `lastcall plan` for what comes of it")
    return ok(f"{asks} in phases of {', '.join(f'{group.seconds} s' for group in settings.groups)}")


def check_delay_limit(facts: HostFacts) -> Finding:
    """How much of the requested time logind grants, and which file decides it."""
    if isinstance(facts.logind, UnknownFact):
        return unknown(SILENT)
    granted, asked, number = facts.logind.granted, requested_seconds(facts), systemd_version_number(facts)
    if isinstance(facts.limit_files, UnknownFact):
        return unknown(f"which file sets it is not known: {facts.limit_files.reason}")
    why, remedy = delay_limit.diagnose_limit(facts.limit_files, asked or 0, granted)
    if math.isinf(granted) and number is not None and number <= _LAST_WITHOUT_INFINITY:
        return failure(f"{why}: systemd {number} cannot power off so", "set a number of seconds")
    if asked is None:
        return unknown(f"{why}; what is asked for is not known")
    if not remedy:
        return ok(why)
    if _agent_will_raise(facts):
        return warning(why, "start the agent, which raises it")
    return failure(why, remedy)


def check_drop_in(facts: HostFacts) -> Finding:
    """Whether the agent could raise the limit."""
    if isinstance(facts.drop_in, UnknownFact):
        return unknown(f"not known: {facts.drop_in.reason}")
    if facts.drop_in.works:
        return ok(facts.drop_in.message)
    asked = requested_seconds(facts)
    if (
        isinstance(facts.logind, LogindState)
        and asked is not None
        and not delay_limit.grants_too_little(asked, facts.logind.granted)
    ):
        return ok(f"{facts.drop_in.message}, and need not be")
    return warning(facts.drop_in.message, "run the agent as root, or set InhibitDelayMaxSec in it yourself")


def check_lock(facts: HostFacts) -> Finding:
    """Whether the agent may delay a shutdown."""
    if isinstance(facts.logind, UnknownFact):
        return unknown(SILENT)
    held = find_lock(LOCK_WHO, facts.logind)
    if held:
        return ok(f"lastcall (pid {held.pid}) holds its delay lock")
    if isinstance(facts.lock, UnknownFact):
        return unknown(f"whether one can be taken is not known: {facts.lock.reason}")
    if facts.lock.works:
        return ok(facts.lock.message)
    return failure(facts.lock.message, "run the agent as root")


def check_other_locks(facts: HostFacts) -> Finding:
    """Which other programs delay a shutdown. All delay locks share one timer, and the last release ends the delay."""
    if isinstance(facts.logind, UnknownFact):
        return unknown(SILENT)
    others = [lock for lock in _shutdown_locks(facts.logind) if lock.who not in (LOCK_WHO, KUBELET_LOCK_WHO)]
    blocks = [lock for lock in others if lock.mode == "block"]
    if blocks and (systemd_version_number(facts) or _BLOCKS_OBEYED) >= _BLOCKS_OBEYED:
        return warning(f"{_lock_list(blocks)} blocks every shutdown until it ends", "end it, or let it finish first")
    if not others:
        return ok("no other program holds one on shutdown")
    return ok(f"also held by {_lock_list(others)}; all delay locks share the same time")


def check_agent(facts: HostFacts) -> Finding:
    """Whether an agent runs and is armed."""
    if isinstance(facts.agent, UnknownFact):
        return unknown(f"whether one runs is not known: {facts.agent.reason}")
    running = facts.agent is not None
    who = f"the agent (pid {facts.agent})" if facts.agent else "the agent"
    if isinstance(facts.logind, UnknownFact):
        return unknown(f"{who} runs; whether it is armed is {SILENT}") if running else _no_agent_finding()
    armed = find_lock(LOCK_WHO, facts.logind)
    if running and armed:
        return ok(f"{who} runs and is armed")
    if armed:
        return warning(
            f"no agent runs with this state directory, but a lock is held for one (pid {armed.pid})",
            f"start it (systemctl start {AGENT_UNIT}), or name its --state-dir",
        )
    if not running:
        return _no_agent_finding()
    if facts.logind.preparing or requested_seconds(facts) == 0:
        return ok(f"{who} runs, and needs no lock now")
    return failure(
        f"{who} runs and is not armed: a shutdown would not wait",
        "its log has the reason (journalctl -u lastcall-agent)",
    )


def _no_agent_finding() -> Finding:
    return warning("no agent runs with this state directory", f"start it (systemctl start {AGENT_UNIT})")


def _read_settings(facts: HostFacts) -> AgentConfig | UnknownFact | InvalidInput:
    if isinstance(facts.config, UnknownFact):
        return facts.config
    try:
        return config.parse_config(facts.config.data, facts.config.path)
    except InvalidInput as error:
        return error


def _shutdown_locks(state: LogindState) -> Iterator[Inhibitor]:
    return (lock for lock in state.inhibitors if "shutdown" in lock.what.split(":"))


def _lock_list(locks: list[Inhibitor]) -> str:
    return ", ".join(f"{lock.who!r} (pid {lock.pid}, {lock.mode}: {lock.why})" for lock in locks)


def _agent_will_raise(facts: HostFacts) -> bool:
    """Whether starting the agent would raise the limit: none has run yet, and our drop-in would win."""
    if isinstance(facts.limit_files, UnknownFact) or isinstance(facts.drop_in, UnknownFact) or not facts.drop_in.works:
        return False
    winner = facts.limit_files[-1].path if facts.limit_files else ""
    return facts.agent is None and (not winner or _sorts_before_ours(winner))


def _sorts_before_ours(path: str) -> bool:
    """Whether our drop-in overrides the file: drop-ins are read in name order, after the main file."""
    name = path.rpartition("/")[2]
    return name == "logind.conf" or name.encode() <= LOGIND_DROP_IN.encode()
