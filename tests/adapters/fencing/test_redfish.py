"""The fencer redfish against the emulator of sushy-tools: what it says, what it switches, and what can be wrong."""

import asyncio
from types import SimpleNamespace

import pytest
from support.fencing.redfish_emulator import MACHINES, PASSWORD, USER, redfish_emulator

from lastcall.adapters.fencing import redfish, redfish_worker
from lastcall.adapters.fencing.fence_worker import FenceAction, FenceQuestion
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.adapters.fencing.worker_process import FenceRequest
from lastcall.adapters.host.clock import SystemClock
from lastcall.errors import InvalidInput, LastcallError, RefusedForSafety, Unavailable
from lastcall.model.power import PowerState

pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("redfish")]
FIRST, SECOND = MACHINES
LONG = 30.0
"""Seconds for what is expected to go well."""


@pytest.fixture(scope="module")
def bmc():
    with redfish_emulator() as emulator:
        yield emulator


@pytest.fixture(autouse=True)
def as_at_first(bmc):
    bmc.slow()
    for name in MACHINES:
        if bmc.power(name) != "On":
            bmc.switch(name, "On")


def fence(bmc, *, patience=LONG, **changes):
    settings = {
        "address": bmc.address,
        "system_id": MACHINES[FIRST],
        "username": USER,
        "password": PASSWORD,
        "authority": bmc.certificate.read_text(),
        **changes,
    }
    return redfish.redfish_fence("bmc", RedfishSettings(**settings), clock=SystemClock(), patience=patience)


async def comes(fence, power):
    """What was accepted takes its time."""
    async with asyncio.timeout(LONG):
        while (answer := await fence.read_power()).power is not power:
            assert answer.power is not PowerState.UNKNOWN, answer.why


async def test_off_and_on_and_no_other_machine(bmc):
    one = fence(bmc)
    assert (await one.read_power()).power is PowerState.ON
    await one.switch_off(LONG)
    await comes(one, PowerState.OFF)
    assert (bmc.power(FIRST), bmc.power(SECOND)) == ("Off", "On")
    await one.switch_off(LONG)
    await one.switch_on(LONG)
    await comes(one, PowerState.ON)


async def test_which_machine_it_is(bmc):
    target = await fence(bmc).read_target()
    assert target.system_uuid == MACHINES[FIRST]
    assert target.name == f"/redfish/v1/Systems/{MACHINES[FIRST]}"
    by_path = await fence(bmc, system_id=f"/redfish/v1/Systems/{MACHINES[SECOND]}").read_target()
    assert by_path.system_uuid == MACHINES[SECOND]


async def test_any_certificate_only_if_that_is_said(bmc):
    assert (await fence(bmc, authority="", insecure=True).read_power()).power is PowerState.ON


CHASSIS = "/redfish/v1/Chassis/15693887-7984-9484-3272-842188918912"
WRONG = {
    "a wrong password": ({"password": "wrong-as-can-be"}, Unavailable, "refuses user or password (HTTP 401)"),
    "a certificate that nobody vouches for": ({"authority": ""}, Unavailable, "is not trusted: "),
    "no such system": ({"system_id": "nobody"}, Unavailable, "has no /redfish/v1/Systems/nobody"),
    "a chassis": ({"system_id": CHASSIS}, RefusedForSafety, "is no computer system but #Chassis."),
    "all systems": ({"system_id": "/redfish/v1/Systems"}, Unavailable, "gave an answer that is not Redfish's"),
    "nobody listens": ({"address": "https://127.0.0.1:1"}, Unavailable, "Connection refused"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_what_is_wrong_is_told_apart(bmc, case):
    changes, error, why = WRONG[case]
    one = fence(bmc, **changes)
    with pytest.raises(error) as raised:
        await one.switch_off(LONG)
    assert why in str(raised.value)
    answer = await one.read_power()
    assert answer.power is PowerState.UNKNOWN
    assert why in answer.why
    assert "wrong-as-can-be" not in answer.why
    assert [bmc.power(name) for name in MACHINES] == ["On", "On"]


async def test_a_slow_bmc_is_waited_for_and_no_longer_than_told(bmc):
    bmc.slow(latency=0.5)
    assert (await fence(bmc).read_power()).power is PowerState.ON
    bmc.slow(latency=3)
    with pytest.raises(LastcallError):
        await fence(bmc).switch_off(2)
    await asyncio.sleep(2)  # what was asked for is answered in this time
    bmc.slow()
    assert bmc.power(FIRST) == "On"


class System:
    """As much of sushy's as is asked for: it refuses what is told it, if it is to, and is then in the state ``after``."""

    def __init__(self, state, *, refuses=None, after=None):
        self.json = {"PowerState": state}
        self.told, self._refuses, self._after = [], refuses, after or state

    def reset_system(self, reset):
        self.told.append(reset)
        if self._refuses:
            raise self._refuses

    def refresh(self, *, force):
        assert force
        self.json = {"PowerState": self._after}


def ask(monkeypatch, system, action):
    monkeypatch.setattr(redfish_worker, "_find_system", lambda turn: system)
    settings = RedfishSettings(address="https://bmc", system_id="1", username="u", password=PASSWORD)
    clock = SystemClock()
    question = FenceQuestion(action=action, deadline=clock.boottime() + LONG, parent=1, settings=settings)
    return redfish_worker.answer_question(FenceRequest(question, clock))


@pytest.mark.parametrize(
    ("state", "power"),
    [
        ("On", PowerState.ON),
        ("Off", PowerState.OFF),
        ("PoweringOn", PowerState.ON),
        ("PoweringOff", PowerState.ON),
        ("Paused", PowerState.ON),
        ("Sleeping", PowerState.UNKNOWN),
        (None, PowerState.UNKNOWN),
    ],
)
def test_what_each_state_means(monkeypatch, state, power):
    answer = ask(monkeypatch, System(state), FenceAction.STATUS).answer
    assert answer.power is power
    assert bool(answer.why) == (power is PowerState.UNKNOWN)


def refusal(status):
    import sushy

    kind = sushy.exceptions.ServerSideError if status >= 500 else sushy.exceptions.BadRequestError
    said = {"error": {"message": "no"}}
    return kind("POST", "https://bmc/reset", SimpleNamespace(status_code=status, json=lambda: said, headers={}))


def test_it_is_told_to_switch_off_although_it_says_that_it_is(monkeypatch):
    import sushy

    system = System("Off")
    ask(monkeypatch, system, FenceAction.OFF)
    assert system.told == [sushy.ResetType.FORCE_OFF]


def test_who_refuses_because_nothing_is_to_be_done_has_accepted(monkeypatch):
    ask(monkeypatch, System("On", refuses=refusal(409), after="Off"), FenceAction.OFF)
    ask(monkeypatch, System("Off", refuses=refusal(400), after="On"), FenceAction.ON)


@pytest.mark.parametrize(("status", "after"), [(400, "On"), (409, "PoweringOff"), (500, "Off")])
def test_who_refuses_otherwise_has_not(monkeypatch, status, after):
    with pytest.raises(Unavailable, match=f"https://bmc answered HTTP {status}"):
        ask(monkeypatch, System("On", refuses=refusal(status), after=after), FenceAction.OFF)


def test_a_system_that_cannot_be_switched_off_so(monkeypatch):
    import sushy

    unfit = sushy.exceptions.InvalidParameterValueError(parameter="value", value="ForceOff", valid_values="On")
    with pytest.raises(Unavailable, match="cannot be switched so"):
        ask(monkeypatch, System("On", refuses=unfit), FenceAction.OFF)


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    missing = ModuleNotFoundError("no", name="sushy")
    with pytest.raises(Unavailable, match=r"sushy is not installed: pip install 'lastcall\[redfish\]'"):
        ask(monkeypatch, System("On", refuses=missing), FenceAction.OFF)


FIELDS = {
    "no address": ({"address": "bmc.example"}, "address: must be https://host"),
    "another scheme": ({"address": "ftp://bmc"}, "address: must be https://host"),
    "a path": ({"address": "https://bmc/redfish"}, "address: must be https://host"),
    "a port that is none": ({"address": "https://bmc:99999"}, "address: must be https://host"),
    "a user in the address": ({"address": "https://me:it@bmc"}, "address: must hold neither user"),
    "no system": ({"system_id": ""}, "systemID: must be the id of a member"),
    "two steps": ({"system_id": "a/b"}, "systemID: must be the id of a member"),
    "upwards": ({"system_id": ".."}, "systemID: must not lead upwards"),
    "upwards in a path": ({"system_id": "/redfish/v1/Systems/../Chassis/1"}, "systemID: must not lead upwards"),
    "another service": ({"system_id": "/admin/reset"}, "systemID: must be the id of a member"),
    "no user": ({"username": ""}, "credentials: the user's name is empty"),
    "both": ({"insecure": True}, "insecureSkipTLSVerify: cannot be true beside a certificate authority"),
}


@pytest.mark.parametrize("case", FIELDS)
def test_settings_that_are_wrong(bmc, case):
    changes, why = FIELDS[case]
    with pytest.raises(InvalidInput, match="^redfish: ") as raised:
        fence(bmc, **changes)
    assert why in str(raised.value)
    assert PASSWORD not in str(raised.value)
