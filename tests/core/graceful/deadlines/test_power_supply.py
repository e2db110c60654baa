"""What a power supply says: the mains, the battery, a forced shutdown."""

import pytest

from lastcall.graceful.deadlines.findings import UnreadableAnswer
from lastcall.graceful.deadlines.power_supply import supply_finding
from lastcall.model.deadline_settings import NutSettings

SETTINGS = NutSettings(ups="ups", min_runtime_seconds=300)


def found(status, runtime=None, settings=SETTINGS):
    variables = {"ups.status": status} | ({} if runtime is None else {"battery.runtime": runtime})
    return supply_finding(variables, settings, now=1000.0)


@pytest.mark.parametrize(
    ("status", "runtime", "deadline"),
    [
        ("OL", "9000", None),
        ("OL CHRG", "10", None),
        ("OL LB", "10", None),  # a battery that is still being charged
        ("OB DISCHRG", "9000", None),
        ("OB DISCHRG", None, None),
        ("OB DISCHRG", "300", 1300),
        ("OB DISCHRG LB", "9000", 10000),
        ("OB DISCHRG LB", None, 1060),
        ("OB DISCHRG LB", "nonsense", 1060),
        ("OB LB", "-5", 1060),
        ("FSD OB LB", "200", 1015),
        ("FSD OL", None, 1015),
    ],
)
def test_when_the_machine_goes_down(status, runtime, deadline):
    notice = found(status, runtime).notice
    assert (notice and notice.deadline) == deadline


def test_a_battery_that_lasts_is_a_warning():
    assert found("OB DISCHRG", "9000").warning == "on battery, battery for 2h30m0s"
    assert found("OL").warning == ""
    assert found("OB", "200", NutSettings(ups="ups")).notice is None, "by default only a low battery counts"


@pytest.mark.parametrize(
    "variables", [{}, {"ups.status": ""}, {"ups.status": "WAIT"}, {"ups.status": "BYPASS"}, {"ups.status": "OFF"}]
)
def test_nothing_is_concluded_from_an_unknown_status(variables):
    with pytest.raises(UnreadableAnswer):
        supply_finding(variables, SETTINGS, now=0)
