"""A drill beside a real logind: a shutdown that begins meanwhile ends it at once."""

import asyncio
import os

import pytest
from support.host.logind import private_logind  # noqa: F401  (fixture)
from support.runtimes.scripted_cri import scripted_cri

from lastcall.adapters.cri.api import api_pb2 as cri
from lastcall.adapters.logind.session import SystemLogind
from lastcall.errors import InvalidInput, ShutdownUnderWay, Unavailable
from lastcall.graceful.drill import rehearsal
from lastcall.wiring.drill import DrillSettings, run_drill

CONFIG = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\nshutdownGracePeriod: 30s\n"


@pytest.fixture
def settings(private_logind, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", private_logind.address)
    (tmp_path / "agent.yaml").write_text(CONFIG)
    known = {"config": tmp_path / "agent.yaml", "state_dir": tmp_path, "node_name": "n1", "kubelet_unit": ""}
    known |= {"kubelet_root": str(tmp_path), "logind_root": private_logind.root}
    return lambda endpoint: DrillSettings(endpoint=endpoint, **known)


async def test_a_shutdown_that_begins_ends_it(settings, private_logind, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.setattr(rehearsal, "LIST_SECONDS", 600.0)
    session, asked = await SystemLogind(private_logind.address).open(), asyncio.Event()

    async def never(*_):
        asked.set()
        await asyncio.Event().wait()

    async with scripted_cri(tmp_path) as (peer, endpoint):
        peer.answers["ListContainers"] = never
        lock = await session.take_lock("so that it waits")
        drill = asyncio.create_task(run_drill(settings(endpoint)))
        await asyncio.wait_for(asked.wait(), 60)
        await private_logind.power_off()
        with pytest.raises(ShutdownUnderWay, match="the machine is shutting down"):
            await asyncio.wait_for(drill, 60)
        os.close(lock)
    session.close()


async def test_without_logind_its_checks_say_so(settings, tmp_path, monkeypatch):
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", f"unix:path={tmp_path}/none")
    async with scripted_cri(tmp_path) as (peer, endpoint):
        peer.answers["ListContainers"] = lambda *_: cri.ListContainersResponse()
        peer.answers["ListPodSandbox"] = lambda *_: cri.ListPodSandboxResponse()
        facts = (await run_drill(settings(endpoint))).facts
    assert (facts.record.lock, facts.record.pods, facts.record.granted) == (False, (), None)
    assert "none" in facts.host.logind.reason


async def test_what_it_cannot_do_without(settings, tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal, "LIST_SECONDS", 0.1)
    with pytest.raises(Unavailable, match="has not listed its pods within"):
        await run_drill(settings(f"unix://{tmp_path}/none.sock"))
    (tmp_path / "agent.yaml").write_text("kind: Pod\n")
    with pytest.raises(InvalidInput, match=r"agent\.yaml"):
        await run_drill(settings(f"unix://{tmp_path}/none.sock"))
