"""The fencer redfish, by sushy, against the BMCs of a lab that runs: told, switched, and told of a machine that is not meant."""

import asyncio
import json

import msgspec
import pytest
from support.common.libraries import need_library
from support.lab.up_process import LabProcess, run

from lastcall.adapters.fencing import redfish
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.resources import NODES
from lastcall.errors import LastcallError
from lastcall.model.power import PowerState
from lastcall_lab.machines import identifiers

pytestmark = pytest.mark.timeout(270)
need_library("sushy", "the extra redfish is not installed")
WITHIN = 60.0


class Bmc:
    """The fence of a machine of the lab, and the lab."""

    def __init__(self, lab):
        self.where = f"--kubeconfig={lab.kubeconfig}"
        self.access = kubeconfig.load_kubeconfig([lab.kubeconfig], SystemClock())

    async def settings(self):
        http = HttpsTransport(self.access.endpoint, self.access.credentials)
        try:
            answer = await http.request("GET", "/lab/redfish", {}, b"")
            self.node = await Client(http, manager="test").get(NODES, "lab-1")
        finally:
            http.close()
        user = msgspec.json.decode(answer.body)
        endpoint = self.access.endpoint
        address = f"https://{endpoint.host}:{endpoint.port}"
        return RedfishSettings(address=address, system_id="lab-1", authority=endpoint.authority, **user)

    def lab(self, *arguments):
        out, said, code = run("bmc", "lab-1", *arguments, self.where, "-o", "json")
        assert (said, code) == ("", 0)
        return json.loads(out)["nodes"][0]


@pytest.fixture(scope="module")
def bmc(tmp_path_factory):
    lab = LabProcess(tmp_path_factory.mktemp("lab"), "--nodes=2")
    lab.start()
    yield Bmc(lab)
    lab.end()


async def until(fence, power):
    async with asyncio.timeout(WITHIN):
        while (await fence.read_power()).power is not power:
            await asyncio.sleep(0.1)


async def test_it_says_which_machine_it_is_switches_it_and_tells(bmc):
    fence = redfish.redfish_fence("bmc", await bmc.settings(), clock=SystemClock(), patience=WITHIN)
    assert (await fence.read_power()).power is PowerState.ON
    said = (await fence.read_target()).system_uuid
    assert said.lower() == bmc.node["status"]["nodeInfo"]["systemUUID"] == identifiers.system_uuid("lab-1")
    await fence.switch_off(WITHIN)
    await until(fence, PowerState.OFF)
    assert bmc.lab()["answers"] == "off"
    await fence.switch_on(WITHIN)
    await until(fence, PowerState.ON)


async def test_one_that_is_wired_to_another_machine_says_so(bmc):
    fence = redfish.redfish_fence("bmc", await bmc.settings(), clock=SystemClock(), patience=WITHIN)
    assert bmc.lab("--wired=lab-2")["bmcFaults"] == ["wired to lab-2"]
    assert (await fence.read_target()).system_uuid.lower() == identifiers.system_uuid("lab-2")
    assert bmc.lab("--wired=lab-1")["bmcFaults"] == []
    assert (await fence.read_target()).system_uuid.lower() == identifiers.system_uuid("lab-1")


async def test_a_wrong_password(bmc):
    settings = msgspec.structs.replace(await bmc.settings(), password="guess")
    fence = redfish.redfish_fence("bmc", settings, clock=SystemClock(), patience=WITHIN)
    answer = await fence.read_power()
    assert answer.power is PowerState.UNKNOWN
    assert answer.why
    with pytest.raises(LastcallError):
        await fence.switch_off(WITHIN)
    assert bmc.lab()["answers"] == "on"
