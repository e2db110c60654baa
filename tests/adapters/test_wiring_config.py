"""The configuration as the agent's wiring takes it from a file."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest
from support.core import RecordingNode

from lastcall.adapters.clock import SystemClock
from lastcall.adapters.processes import ProcessRuntime
from lastcall.lab.demo import power
from lastcall.wiring import Program, Settings, load_config

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
async def running(directory):
    """A program on a machine of its own, when it has looked around once."""
    clock = SystemClock()
    where = Settings(config=directory / "agent.yaml", state_dir=directory / "state", node_name="n1", metrics=None)
    async with power.embedded(clock, where.state_dir) as machine:
        program = Program(
            where,
            runtime=ProcessRuntime(where.state_dir, clock),
            node=RecordingNode(clock),
            logind=machine.logind,
            lock_keeper=machine.keeper,
            limit_files=machine.limit_files,
        )
        life = asyncio.create_task(program.run())
        try:
            await program.first_round()
            yield program
        finally:
            program.agent.leave()
            await life


async def test_what_waits_for_the_next_start_is_told_when_it_changes(tmp_path, caplog):
    file = tmp_path / "agent.yaml"
    file.write_text(f"{HEAD}staticPodPath: one\n")
    async with running(tmp_path) as program:
        for path, told in (("one", 0), ("two", 1), ("two", 2), ("one", 2)):
            file.write_text(f"{HEAD}staticPodPath: {path}\n")
            program.reload()
            assert [record.message for record in caplog.records if "staticPodPath" in record.message] == [
                "configuration: staticPodPath: is taken over when the agent is started again"
            ] * told
