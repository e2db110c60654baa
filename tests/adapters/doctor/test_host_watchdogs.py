"""What sysfs tells of watchdogs, without any being started."""

from lastcall.adapters.doctor.file_facts import list_watchdogs
from lastcall.doctor.facts import WatchdogFacts


def test_devices_as_the_kernel_tells_of_them(tmp_path):
    files = {
        "watchdog0/identity": "iTCO_wdt\n",
        "watchdog0/nowayout": "1\n",
        "watchdog0/min_timeout": "2\n",
        "watchdog0/max_timeout": "613\n",
        "watchdog1/identity": "Software Watchdog\n",
    }
    for name, text in files.items():
        path = tmp_path / "sys/class/watchdog" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list_watchdogs(tmp_path) == (
        WatchdogFacts(name="watchdog0", identity="iTCO_wdt", nowayout=True, shortest=2, longest=613),
        WatchdogFacts(name="watchdog1", identity="Software Watchdog", nowayout=False),
    )


def test_a_machine_without_any(tmp_path):
    assert list_watchdogs(tmp_path) == ()
