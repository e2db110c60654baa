"""``lastcall lab up --data``: it is the same lab again, also after it was killed."""

import asyncio
import json
import stat
from random import Random

import pytest
from support.common.file_modes import modes
from support.kube.kubectl import config_map
from support.lab.up_process import kubectl, labs_of_a_test, run  # noqa: F401  (fixtures)

from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.kube import kubeconfig
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.https_transport import HttpsTransport
from lastcall.adapters.kube.informer import Informer
from lastcall.adapters.kube.resources import CONFIG_MAPS
from lastcall.aio import cancel_and_wait

pytestmark = pytest.mark.timeout(270)


def test_it_is_the_same_lab_again(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    lab.start()
    use = kubectl(lab, tmp_path / "home")
    config = lab.kubeconfig.read_text()
    use("create -f -", given=config_map("a", color="red"))
    token = use("create token default").strip()
    assert lab.stop() == 0
    assert not lab.kubeconfig.exists()
    lab.start()
    assert lab.kubeconfig.read_text() == config, "the same authority and token, and the port was free"
    assert use("get cm a -o jsonpath={.data.color}") == "red"
    assert "system:serviceaccount:default:default" in use("auth whoami --token", token)


def test_data_is_its_owners_alone(labs, tmp_path):
    data = tmp_path / "data"
    lab = labs("lab", f"--data={data}")
    lab.start()
    assert modes(data) == {0o600, 0o700}
    assert lab.stop() == 0
    for path in (data, *data.rglob("*")):  # as an older version has left them
        path.chmod(0o755 if path.is_dir() else 0o644)
    lab.start()
    assert modes(data) == {0o600, 0o700}


def test_a_directory_that_others_use_keeps_its_mode(labs, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "theirs").touch()
    shared.chmod(0o755)
    lab = labs("lab", f"--data={shared}")
    lab.start()
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
    assert {stat.S_IMODE((shared / name).stat().st_mode) for name in ("control-plane", "machines")} == {0o700}
    assert stat.S_IMODE((shared / "lab.db").stat().st_mode) == 0o600


def test_the_port_of_last_time_is_taken(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    lab.start()
    port = (tmp_path / "data/control-plane/port").read_text()
    assert lab.stop() == 0
    other = labs("other", f"--port={port}")
    other.start()
    lab.start()
    assert (tmp_path / "data/control-plane/port").read_text() != port
    assert kubectl(lab, tmp_path / "home")("get ns default -o name") == "namespace/default\n"


async def test_killed_while_kubectl_writes(labs, tmp_path):
    lab = labs("lab", f"--data={tmp_path / 'data'}")
    await asyncio.to_thread(lab.start)
    use = kubectl(lab, tmp_path / "home")
    access = await asyncio.to_thread(kubeconfig.load_kubeconfig, [lab.kubeconfig], SystemClock())
    http = HttpsTransport(access.endpoint, access.credentials)
    seen = {}
    watching = asyncio.create_task(_watch(Client(http), seen))
    acknowledged = {}
    try:
        for life in range(3):
            writers = [
                asyncio.create_task(asyncio.to_thread(_write, use, f"w{life}-{n}", acknowledged)) for n in range(3)
            ]
            enough = len(acknowledged) + 6
            while len(acknowledged) < enough:
                await asyncio.sleep(0.01)
            lab.process.kill()
            await asyncio.to_thread(lab.process.wait)
            await asyncio.gather(*writers)
            await asyncio.to_thread(lab.start)
            there = {
                one["metadata"]["name"]: one for one in (await asyncio.to_thread(use.json, "get cm -l w"))["items"]
            }
            assert (
                acknowledged.items()
                <= {name: one["metadata"]["resourceVersion"] for name, one in there.items()}.items()
            )
            last = await asyncio.to_thread(use.json, "create cm", f"last-{life}")
            assert int(last["metadata"]["resourceVersion"]) > max(map(int, acknowledged.values())), "revisions go on"
        async with asyncio.timeout(60):
            while not (acknowledged.keys() | {"last-2"}) <= seen.keys():
                await asyncio.sleep(0.05)
    finally:
        await cancel_and_wait(watching)
        http.close()


def _write(use, name, acknowledged):
    """Creates objects until the lab is gone; what kubectl has seen acknowledged is noted."""
    for number in range(200):
        made = config_map(f"{name}-{number}", labels={"w": "yes"})
        said = use.run("create -o json -f -", given=made)
        if said.code:
            return
        obj = json.loads(said.out)
        acknowledged[obj["metadata"]["name"]] = obj["metadata"]["resourceVersion"]


async def _watch(client, seen):
    """One watch over all lives of the lab."""
    watching = Informer(client, CONFIG_MAPS, clock=SystemClock(), random=Random(1), namespace="default")
    async for change in watching.changes():
        if change.new:
            seen[change.key.name] = change.new
