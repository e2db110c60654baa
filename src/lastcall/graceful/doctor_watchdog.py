"""The doctor's check of the machine's watchdog, if the agent is to keep it. Pure."""

from collections.abc import Iterator

from lastcall.errors import InvalidInput
from lastcall.graceful import config
from lastcall.graceful.finding import Finding, failure, ok, unknown, warning
from lastcall.host import HostFacts, Unknown, Watchdog
from lastcall.model import duration
from lastcall.model.watchdog import WatchdogSettings, numbered

_OF_SOFTWARE = "Software Watchdog"
"""The identity of softdog (drivers/watchdog/softdog.c)."""


def asked_for(facts: HostFacts) -> WatchdogSettings | Unknown | None:
    """What the configuration says of it; None if it asks for none."""
    if isinstance(facts.config, Unknown):
        return Unknown(reason="whether one is asked for is not known without a configuration")
    try:
        return config.read(facts.config.data, facts.config.path).watchdog
    except InvalidInput:
        return Unknown(reason="whether one is asked for is not known while the configuration is not valid")


def watchdog(facts: HostFacts) -> Finding:
    """Whether the bound of the configuration would hold with the device that is there."""
    settings = asked_for(facts)
    if isinstance(settings, Unknown):
        return unknown(settings.reason)
    if settings is None:
        return ok("the configuration asks for none")
    if isinstance(facts.watchdogs, Unknown):
        return unknown(f"not known: {facts.watchdogs.reason}")
    name = numbered(settings.device)
    device = next((one for one in facts.watchdogs if one.name == name), None)
    if device is None:
        there = ", ".join(one.name for one in facts.watchdogs) or "none"
        return failure(f"there is no {name} (there is: {there})", "load its driver, or name another device")
    return _judged(facts, settings, device)


def _judged(facts: HostFacts, settings: WatchdogSettings, device: Watchdog) -> Finding:
    what = (
        f"{device.identity or device.name}: {settings.armed().arithmetic} after its last renewal the machine has reset"
    )
    for message, fix in _wrong(facts, settings, device):
        return failure(message, fix)
    if concerns := [*_concerns(facts, device)]:
        return warning(f"{what}; but {'; '.join(one for one, _ in concerns)}", "; ".join(fix for _, fix in concerns))
    if isinstance(facts.watchdog_use, Unknown):
        return unknown(f"{what}; whether systemd uses it is not known: {facts.watchdog_use.reason}")
    return ok(what)


def _wrong(facts: HostFacts, settings: WatchdogSettings, device: Watchdog) -> Iterator[tuple[str, str]]:
    """By which it will not be armed."""
    use, wanted = facts.watchdog_use, settings.timeout_seconds
    if wanted < device.shortest or 0 < device.longest < wanted:
        told = f"its driver takes timeouts from {device.shortest} to {device.longest or 'any'} s, not {wanted} s"
        yield told, "set another watchdog.timeoutSeconds"
    if not isinstance(use, Unknown) and use.running:
        yield "systemd holds it (RuntimeWatchdogSec=)", "set RuntimeWatchdogSec=0 in /etc/systemd/system.conf"
    if not isinstance(use, Unknown) and use.hidden:
        told = "the agent's unit has PrivateDevices=yes, so that it finds no device"
        yield told, "set PrivateDevices=no, DevicePolicy=closed and DeviceAllow= for the device"


def _concerns(facts: HostFacts, device: Watchdog) -> Iterator[tuple[str, str]]:
    """By which the bound may not hold, or the machine be reset for nothing."""
    use = facts.watchdog_use
    if not isinstance(use, Unknown) and use.rebooting:
        late = duration.of_seconds(use.rebooting)
        yield f"at a reboot systemd pets it for up to {late}", "set RebootWatchdogSec=0 in /etc/systemd/system.conf"
    if device.identity == _OF_SOFTWARE:
        yield "a kernel that hangs does not reset itself by it", "use a device of hardware"
    if device.nowayout:
        yield (
            "it cannot be stopped (nowayout): the machine is reset when the agent is",
            "load its driver without nowayout",
        )
