"""The configuration as the agent's wiring takes it from a file."""

import asyncio
import contextlib
import json
import os
from pathlib import Path

import pytest
from msgspec import structs
from support.agents import shutdown_records
from support.agents.virtual_parts import RecordingNode

from lastcall.adapters.host.boot import boot_id
from lastcall.adapters.host.clock import SystemClock
from lastcall.adapters.state.journal_files import JournalFiles
from lastcall.errors import InvalidInput
from lastcall.model.shutdown import ShutdownResumed, from_lines, to_line
from lastcall.wiring import agent, agent_beside_kubelet
from lastcall.wiring.agent import AgentProgram, AgentSettings
from lastcall.wiring.agent_beside_kubelet import KubeletSettings, run_agent_beside_kubelet
from lastcall.wiring.config import is_shutdown_under_way, load_config, load_starting_config
from lastcall_lab.demo import demo_logind
from lastcall_lab.processes import ProcessRuntime

HEAD = "apiVersion: lastcall.dev/v1alpha1\nkind: AgentConfiguration\n"


@pytest.mark.parametrize(
    ("said", "taken"),
    [("manifests", "{}/manifests"), ("../up", "{}/../up"), ("/etc/pods", "/etc/pods"), ("", "")],
)
def test_a_relative_path_is_taken_from_the_files_directory(tmp_path, monkeypatch, said, taken):
    monkeypatch.chdir("/")
    file = tmp_path / "agent.yaml"
    file.write_text(f'{HEAD}staticPodPath: "{said}"\n')
    for path in (file, Path(os.path.relpath(file))):
        assert load_config(path).static_pod_path == taken.format(tmp_path)


@contextlib.asynccontextmanager
async def running(directory, *, going_down=False):
    """A program on a machine of its own, when it has looked around once."""
    clock = SystemClock()
    where = AgentSettings(config=directory / "agent.yaml", state_dir=directory / "state", node_name="n1", metrics=None)
    async with demo_logind.open_embedded_logind(clock, where.state_dir) as machine:
        if going_down:
            await machine.press()
        program = AgentProgram(
            where,
            runtime=ProcessRuntime(where.state_dir, clock),
            node=RecordingNode(clock),
            logind=machine.logind,
            lock_keeper=machine.keeper,
            limit_files=machine.limit_files,
        )
        life = asyncio.create_task(program.run())
        try:
            await program.wait_for_first_round()
            yield program
        finally:
            program.agent.request_stop()
            await life


@pytest.mark.parametrize(
    ("field", "value"), [("staticPodPath", "{}"), ("storageLease", "{{sanlock: {{lockspace: {}}}}}")]
)
async def test_what_waits_for_the_next_start_is_told_when_it_changes(tmp_path, caplog, field, value):
    file = tmp_path / "agent.yaml"
    file.write_text(f"{HEAD}{field}: {value.format('one')}\n")
    async with running(tmp_path) as program:
        for name, told in (("one", 0), ("two", 1), ("two", 2), ("one", 2)):
            file.write_text(f"{HEAD}{field}: {value.format(name)}\n")
            program.reload_config()
            assert [record.message for record in caplog.records if field in record.message] == [
                f"configuration: {field}: a change takes effect when the agent restarts"
            ] * told


# -- in the middle of a shutdown ---------------------------------------------------------------------------------------

BROKEN = f"{HEAD}shutdownGracePeriod: soon\n"


def left(directory, *, boot=None, called_off=False):
    """What an earlier life of the agent left: a shutdown whose lock is still held, or which was called off."""
    now = SystemClock().boottime()
    began, *events = (shutdown_records.cancelled if called_off else shutdown_records.dozen)()
    began = structs.replace(began, at=now, deadline=now + 60, boot_id=boot or boot_id())
    journals = JournalFiles(directory / "state")
    journals.prepare()
    journal = journals.create(began.id)
    for event in (began, *(events if called_off else ())):
        journal.append(to_line(event))
    journal.close()
    return journals


@pytest.mark.parametrize("broken", [BROKEN, "{", None], ids=["a field", "no YAML", "no file"])
def test_a_configuration_that_is_not_valid_is_done_without_then(tmp_path, broken):
    if broken:
        (tmp_path / "agent.yaml").write_text(broken)
    config, problem = load_starting_config(tmp_path / "agent.yaml", left(tmp_path))
    assert not config.is_enabled
    assert problem is not None
    assert "agent.yaml" in str(problem)


@pytest.mark.parametrize(
    "options", [None, {"boot": "another"}, {"called_off": True}], ids=["nothing", "an earlier boot", "called off"]
)
def test_at_rest_it_is_told_at_once(tmp_path, options):
    journals = JournalFiles(tmp_path / "state") if options is None else left(tmp_path, **options)
    (tmp_path / "agent.yaml").write_text(BROKEN)
    with pytest.raises(InvalidInput, match="shutdownGracePeriod"):
        load_starting_config(tmp_path / "agent.yaml", journals)


def test_a_journal_that_cannot_be_read_is_no_shutdown(tmp_path):
    journals = JournalFiles(tmp_path / "state")
    journals.prepare()
    (tmp_path / "state" / "shutdowns" / "x.jsonl").write_text("{}\n")
    assert not is_shutdown_under_way(journals)
    (tmp_path / "state" / "shutdowns" / "x.jsonl").unlink()
    (tmp_path / "state" / "shutdowns" / "x.jsonl").mkdir()
    assert not is_shutdown_under_way(journals)


async def test_the_shutdown_goes_on_and_the_configuration_is_taken_when_it_is_mended(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(agent, "CONFIG_SECONDS", 0.01)
    journals = await asyncio.to_thread(left, tmp_path)
    (tmp_path / "agent.yaml").write_text(BROKEN)
    async with running(tmp_path, going_down=True) as program:
        async with asyncio.timeout(20):
            while not any(isinstance(event, ShutdownResumed) for event in from_lines(journals.latest()[1])):
                await asyncio.sleep(0.01)
            assert "without the configuration" in caplog.text
            (tmp_path / "agent.yaml").write_text(
                BROKEN.replace("soon", "20s") + "shutdownGracePeriodCriticalPods: 5s\n"
            )
            while not program.agent._config.is_enabled:
                await asyncio.sleep(0.01)
    assert len(await asyncio.to_thread(journals.list_ids)) == 1, "no other shutdown was begun"


def kubelet(directory, **fields):
    return KubeletSettings(endpoint=f"unix://{directory}/cri.sock", unit="", **fields)


@pytest.mark.parametrize("in_a_shutdown", [True, False])
async def test_a_kubeconfig_that_is_not_there_is_done_without_then_and_refused_at_rest(
    tmp_path, monkeypatch, caplog, in_a_shutdown
):
    made = []

    class Made:
        def __init__(self, settings, **roles):
            made.append(roles)

        async def run(self):
            pass

    monkeypatch.setattr(agent_beside_kubelet, "AgentProgram", Made)
    if in_a_shutdown:
        await asyncio.to_thread(left, tmp_path)
    (tmp_path / "agent.yaml").write_text(f"{HEAD}watchdog: {{}}\n")
    where = AgentSettings(config=tmp_path / "agent.yaml", state_dir=tmp_path / "state", node_name="n1", metrics=None)
    missing = str(tmp_path / "kubeconfig")
    with contextlib.nullcontext() if in_a_shutdown else pytest.raises(InvalidInput, match=missing):
        await run_agent_beside_kubelet(where, kubelet(tmp_path, kubeconfig=missing))
    listeners = [listener.__self__.__class__.__name__ for roles in made for listener in roles["listeners"]]
    records = ["OwnPodSources", "NodeShutdownRecorder"]
    assert listeners == records * in_a_shutdown, "the node's identity may write the record"
    assert [roles["watchdog"] for roles in made] == [None] * in_a_shutdown
    assert not in_a_shutdown or missing in caplog.text
    assert ("no watchdog until the agent restarts" in caplog.text) is in_a_shutdown


@pytest.mark.parametrize("in_cluster", [True, False])
async def test_an_agent_in_a_pod_announces_the_shutdown_of_its_node(tmp_path, monkeypatch, in_cluster):
    made, own = [], []

    class Made:
        def __init__(self, settings, **roles):
            made.append(roles["listeners"])
            own.append(roles["runtime"]._own_pod)

        async def run(self):
            pass

    monkeypatch.setattr(agent_beside_kubelet, "AgentProgram", Made)
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("POD_UID", "u-1")
    (tmp_path / "agent.yaml").write_text(HEAD)
    where = AgentSettings(config=tmp_path / "agent.yaml", state_dir=tmp_path / "state", node_name="n1", metrics=None)
    with pytest.raises(InvalidInput, match="this is no pod") if in_cluster else contextlib.nullcontext():
        await run_agent_beside_kubelet(where, kubelet(tmp_path, in_cluster=in_cluster))
    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "c", "user": {"token": "t"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    await run_agent_beside_kubelet(where, kubelet(tmp_path, in_cluster=in_cluster))
    recorders = [len(listeners) - 1 for listeners in made]
    assert recorders == ([1] if in_cluster else [1, 1]), "one beside the checkpoint of own pods"
    assert set(own) == {"u-1" if in_cluster else ""}
