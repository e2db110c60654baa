"""The BMCs of the lab's machines as a Redfish service: what it tells, what it switches, whom it believes."""

import base64

import msgspec
import pytest
from support.lab.idle_machine import machine

from lastcall.errors import InvalidInput
from lastcall_lab import virtual
from lastcall_lab.apiserver.values.request import Request
from lastcall_lab.machines import identifiers
from lastcall_lab.machines.bmc import Bmc, BmcFaults
from lastcall_lab.machines.power import PowerSwitch
from lastcall_lab.machines.redfish_service import USER, RedfishService

LAB_1 = "/redfish/v1/Systems/lab-1"
RESET = f"{LAB_1}/Actions/ComputerSystem.Reset"


class Machines:
    """One machine, lab-1, which is on; ``pages.Machines`` as far as it is asked."""

    names = ("lab-1",)

    def __init__(self):
        self.machine, clock = machine()
        self.one = Bmc(self.machine, clock)

    def bmc(self, node):
        if node != "lab-1":
            raise InvalidInput("bmc", [f'"{node}" is no machine of this lab'])
        return self.one

    async def switch_by_bmc(self, node, *, on):
        await self.bmc(node).power(on=on)


def basic(user=USER, password="secret"):
    return {"authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def asked(method, path, body=None, *, headers=None, faults=None):
    """Status and content of the answer, and what was done to the machine since it is on."""

    async def ask():
        machines = Machines()
        await machines.machine.turn(PowerSwitch.ON)
        machines.one.faults = faults or BmcFaults()
        data = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, path, headers=basic() if headers is None else headers, body=data)
        answer = await RedfishService(machines, "secret").handle(request)
        content = msgspec.json.decode(answer.body) if answer.body else None
        return answer.status, content, machines.machine.host.done[1:]

    return virtual.run(ask())


def test_a_system_says_which_machine_it_is_and_whether_it_is_on():
    status, system, done = asked("GET", LAB_1)
    assert (status, system["PowerState"], system["UUID"], done) == (200, "On", identifiers.system_uuid("lab-1"), [])


def test_the_way_to_it():
    root = asked("GET", "/redfish/v1/", headers={})[1]
    systems = asked("GET", root["Systems"]["@odata.id"])[1]
    assert systems["Members"] == [{"@odata.id": LAB_1}]
    assert asked("GET", LAB_1)[1]["Actions"]["#ComputerSystem.Reset"]["target"] == RESET


@pytest.mark.parametrize(("reset", "done"), [("ForceOff", ["die"]), ("On", [])])
def test_a_reset(reset, done):
    assert asked("POST", RESET, {"ResetType": reset}) == (204, None, done)


@pytest.mark.parametrize("body", [{"ResetType": "GracefulRestart"}, {"ResetType": ["On"]}, {}, [], None])
def test_a_reset_that_is_none(body):
    status, content, done = asked("POST", RESET, body)
    assert (status, done) == (400, [])
    assert content["error"]["message"] == "ResetType must be one of On, ForceOff"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        basic(password="guess"),
        basic(user="root"),
        {"authorization": "Bearer secret"},
        {"authorization": "Basic ???"},
        {"authorization": "Basic /w=="},
    ],
)
def test_nobody_else_is_told_or_obeyed(headers):
    assert asked("GET", LAB_1, headers=headers)[0] == 401
    status, _, done = asked("POST", RESET, {"ResetType": "ForceOff"}, headers=headers)
    assert (status, done) == (401, [])


@pytest.mark.parametrize("path", ["/redfish/v1/Systems/lab-9", "/redfish/v1/Chassis", f"{LAB_1}/Memory"])
def test_what_is_not_there(path):
    assert asked("GET", path)[0] == 404


@pytest.mark.parametrize(
    ("faults", "status", "power"),
    [(BmcFaults(says=False), 200, "Off"), (BmcFaults(late=3), 200, "On"), (BmcFaults(deaf=True), 504, None)],
)
def test_the_faults_of_a_bmc(faults, status, power):
    code, content, _ = asked("GET", LAB_1, faults=faults)
    assert (code, content.get("PowerState")) == (status, power)


def test_one_that_is_stuck_says_that_it_has_switched():
    assert asked("POST", RESET, {"ResetType": "ForceOff"}, faults=BmcFaults(stuck=True)) == (204, None, [])
