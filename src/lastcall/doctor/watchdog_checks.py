"""The doctor's check of the machine's watchdog, if the configuration asks for one (pure)."""

from collections.abc import Iterator

from lastcall.doctor.facts import HostFacts, UnknownFact, WatchdogFacts
from lastcall.doctor.finding import Finding, failure, ok, unknown, warning
from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.model import duration
from lastcall.model.watchdog import WatchdogSettings, sysfs_name

_OF_SOFTWARE = "Software Watchdog"
"""The identity of softdog (drivers/watchdog/softdog.c)."""


def requested_watchdog(facts: HostFacts) -> WatchdogSettings | UnknownFact | None:
    """The configured watchdog; None if the configuration has none."""
    if isinstance(facts.config, UnknownFact):
        return UnknownFact(reason="whether one is asked for is not known without a configuration")
    try:
        return config.parse_config(facts.config.data, facts.config.path).watchdog
    except InvalidInput:
        return UnknownFact(reason="whether one is asked for is not known while the configuration is not valid")


def check_watchdog(facts: HostFacts) -> Finding:
    """Whether the configured reset bound would hold with the machine's device."""
    settings = requested_watchdog(facts)
    if isinstance(settings, UnknownFact):
        return unknown(settings.reason)
    if settings is None:
        return ok("the configuration asks for none")
    if isinstance(facts.watchdogs, UnknownFact):
        return unknown(f"not known: {facts.watchdogs.reason}")
    name = sysfs_name(settings.device)
    device = next((one for one in facts.watchdogs if one.name == name), None)
    if device is None:
        there = ", ".join(one.name for one in facts.watchdogs) or "none"
        return failure(f"there is no {name} (there is: {there})", "load its driver, or name another device")
    return _judge_device(facts, settings, device)


def _judge_device(facts: HostFacts, settings: WatchdogSettings, device: WatchdogFacts) -> Finding:
    what = f"{device.identity or device.name}: {settings.timing_with().bound_arithmetic} after its last renewal the machine has reset itself"
    for message, fix in _device_problems(facts, settings, device):
        return failure(message, fix)
    if concerns := [*_device_concerns(facts, device)]:
        return warning(f"{what}; but {'; '.join(one for one, _ in concerns)}", "; ".join(fix for _, fix in concerns))
    if isinstance(facts.watchdog_use, UnknownFact):
        return unknown(f"{what}; whether systemd uses it is not known: {facts.watchdog_use.reason}")
    return ok(what)


def _device_problems(facts: HostFacts, settings: WatchdogSettings, device: WatchdogFacts) -> Iterator[tuple[str, str]]:
    """Reasons why the agent would not arm the device."""
    use, wanted = facts.watchdog_use, settings.timeout_seconds
    if wanted < device.shortest or 0 < device.longest < wanted:
        message = f"its driver takes timeouts from {device.shortest} to {device.longest or 'any'} s, not {wanted} s"
        yield message, "set another watchdog.timeoutSeconds"
    if not isinstance(use, UnknownFact) and use.running:
        yield "systemd holds it (RuntimeWatchdogSec=)", "set RuntimeWatchdogSec=0 in /etc/systemd/system.conf"
    if not isinstance(use, UnknownFact) and use.hidden:
        message = "the agent's unit has PrivateDevices=yes, so that it finds no device"
        yield message, "set PrivateDevices=no, DevicePolicy=closed and DeviceAllow= for the device"


def _device_concerns(facts: HostFacts, device: WatchdogFacts) -> Iterator[tuple[str, str]]:
    """Reasons why the bound may not hold, or a healthy machine may be reset."""
    use = facts.watchdog_use
    if not isinstance(use, UnknownFact) and use.rebooting:
        late = duration.format_seconds(use.rebooting)
        yield f"at a reboot systemd pets it for up to {late}", "set RebootWatchdogSec=0 in /etc/systemd/system.conf"
    if device.identity == _OF_SOFTWARE:
        yield "it does not reset a machine whose kernel hangs", "use a device of hardware"
    if device.nowayout:
        yield (
            "it cannot be stopped (nowayout): the machine is reset when the agent is",
            "load its driver without nowayout",
        )
