"""The fencer redfish, by sushy, against the BMCs of a lab that runs: told, switched, and told of a machine that is not meant."""

import asyncio
import json

import msgspec
import pytest
from support.lab_process import LabProcess, run

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.fencing import redfish
from lastcall.adapters.fencing.redfish import RedfishSettings
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.http import Http
from lastcall.adapters.kube.resources import NODES
from lastcall.errors import LastcallError
from lastcall.lab import machine_ids
from lastcall.model.power import Power

pytestmark = pytest.mark.timeout(270)
pytest.importorskip("sushy", reason="the extra redfish is not installed")
WITHIN = 60.0


class Bmc:
    """The fence of a machine of the lab, and the lab."""

    def __init__(self, lab):
        self.where = f"--kubeconfig={lab.kubeconfig}"
        self.access = kubeconfig.load([lab.kubeconfig], SystemClock())

    async def settings(self):
        http = Http(self.access.endpoint, self.access.credentials)
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
        while (await fence.status()).power is not power:
            await asyncio.sleep(0.1)


async def test_it_says_which_machine_it_is_switches_it_and_tells(bmc):
    fence = redfish.fence("bmc", await bmc.settings(), clock=SystemClock(), patience=WITHIN)
    assert (await fence.status()).power is Power.ON
    said = (await fence.target()).system_uuid
    assert said.lower() == bmc.node["status"]["nodeInfo"]["systemUUID"] == machine_ids.system_uuid("lab-1")
    await fence.off(WITHIN)
    await until(fence, Power.OFF)
    assert bmc.lab()["answers"] == "off"
    await fence.on(WITHIN)
    await until(fence, Power.ON)


async def test_one_that_is_wired_to_another_machine_says_so(bmc):
    fence = redfish.fence("bmc", await bmc.settings(), clock=SystemClock(), patience=WITHIN)
    assert bmc.lab("--wired=lab-2")["bmcFaults"] == ["wired to lab-2"]
    assert (await fence.target()).system_uuid.lower() == machine_ids.system_uuid("lab-2")
    assert bmc.lab("--wired=lab-1")["bmcFaults"] == []
    assert (await fence.target()).system_uuid.lower() == machine_ids.system_uuid("lab-1")


async def test_a_wrong_password(bmc):
    settings = msgspec.structs.replace(await bmc.settings(), password="guess")
    fence = redfish.fence("bmc", settings, clock=SystemClock(), patience=WITHIN)
    answer = await fence.status()
    assert answer.power is Power.UNKNOWN
    assert answer.why
    with pytest.raises(LastcallError):
        await fence.off(WITHIN)
    assert bmc.lab()["answers"] == "on"
