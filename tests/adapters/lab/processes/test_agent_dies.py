"""Pods as plain processes outlive their agent, and the next one finds them again, and no others."""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from support.runtimes.pod_scripts import (
    GATED,
    OBEDIENT,
    READY,
    STUBBORN,
    container,
    eventually,
    open_gate,
    pod,
    says,
    told,
)
from support.runtimes.process_pods import a_world, agent, alive, directory, file_pid, processes_of, started, stop  # noqa: F401  (fixtures)

from lastcall.errors import InvalidInput, Unavailable
from lastcall_lab.processes import process


async def start_with_retries(world, one):
    """As a kubelet does it: the shim of the agent that died may be about to see that it must not start."""
    for _ in range(20):
        with contextlib.suppress(Unavailable):
            return await world.runtime.start_pod(one)
        await asyncio.sleep(0.1)
    return await world.runtime.start_pod(one)


class TestTheAgentDies:
    async def test_containers_go_on_and_end_well_under_the_next_one(self, world):
        one = pod(world, "web", container("main", OBEDIENT))
        with agent(world, "start", one):
            await says(world, "web.main", "ready")
        await world.restarted()
        (live,) = await world.runtime.list_pods()
        assert live.pod.metadata == one.metadata
        assert await stop(world, live.containers["main"]) == 7
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_exit_codes_of_the_time_between_are_told_in_order(self, world):
        one = pod(world, "job", container("a", f"{GATED} 3"), container("b", f"{GATED} 0"), container("c", STUBBORN))
        with agent(world, "start", one):
            for name in "abc":
                await says(world, f"job.{name}", "ready")
        for name in "ba":
            open_gate(world, f"job.{name}")
            await says(world, f"job.{name}", "ready", "bye")
            shim = file_pid(world, one, "shim", name)
            await eventually(lambda shim=shim: not alive(shim))
        await world.restarted()
        uid = one.metadata.uid
        assert [await world.runtime.next_ended(), await world.runtime.next_ended()] == [(uid, "b", 0), (uid, "a", 3)]
        (live,) = await world.runtime.list_pods()
        assert list(live.containers) == ["c"]

    async def test_sigterm_is_not_sent_again(self, world):
        with agent(world, "stop", pod(world, "web", container("main", STUBBORN))):
            await says(world, "web.main", "ready", "TERM")
        await world.restarted()
        (live,) = await world.runtime.list_pods()
        assert await stop(world, live.containers["main"], 1) == 137
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_sigterm_is_recorded_before_it_is_sent(self, world):
        record = world.directory.parent / "state" / "pods" / "*" / "main" / "stop"
        _, main, _ = await started(world, f"""trap 'cat {record} >> "$OUT"; exit 0' TERM; {READY} sleep 1000 & wait""")
        assert await stop(world, main) == 0
        assert told(world, "web.main") == ["ready", "yes"]

    async def test_a_full_disk_keeps_nobody_from_getting_sigterm(self, world):
        live, main, _ = await started(world)
        record = directory(world, live.pod) / "stop"
        record.unlink()
        record.symlink_to("/dev/full")
        assert await stop(world, main) == 7

    async def test_a_hook_dies_with_it(self, world):
        hook = {"preStop": {"exec": {"command": ["sh", "-c", 'echo HOOK $$ >> "$OUT"; exec sleep 1000']}}}
        with agent(world, "hook", pod(world, "web", container("main", OBEDIENT, lifecycle=hook))):
            await eventually(lambda: len(told(world, "web.main")) == 2)
            pid = int(told(world, "web.main")[1].split()[1])
            assert alive(pid)
        await eventually(lambda: not alive(pid))
        await world.restarted()

    @pytest.mark.parametrize("delay", [0.0, 0.01, 0.02, 0.03, 0.05, 0.08])
    async def test_at_any_moment_of_starting_no_process_is_lost(self, world, delay):
        """Whatever has come to run is known to the next agent, and ends when that one says so."""
        init = [container("first", "exit 0")]
        pods = [pod(world, f"pod-{n}", container("main", OBEDIENT), init=init) for n in range(3)]
        with agent(world, "start", *pods):
            await eventually(lambda: any(directory(world, one).parent.exists() for one in pods))
            await asyncio.sleep(delay)
        await world.restarted()
        known = await world.runtime.list_pods()
        uids = {live.pod.metadata.uid for live in known}
        lost = [one.metadata.uid for one in pods if one.metadata.uid not in uids]
        await eventually(lambda: not any(map(processes_of, lost)))  # a shim on its way sees that it must not
        for live in await world.runtime.list_pods():
            for container_id in live.containers.values():
                assert await stop(world, container_id) in (0, 7, 143)
        assert [processes_of(one.metadata.uid) for one in pods] == [[], [], []]
        lives = await asyncio.gather(*(start_with_retries(world, one) for one in pods))
        assert [list(live.containers) for live in lives] == [["main"]] * 3

    async def test_a_shim_that_comes_too_late_starts_nothing(self, world, monkeypatch):
        """As if the agent had died after it had started the shim, and before that ran."""
        monkeypatch.setattr("lastcall_lab.processes.container.sys.executable", _delayed(world))
        made = pod(world, "web", container("main", OBEDIENT))
        starting = asyncio.create_task(world.runtime.start_pod(made))
        await eventually(lambda: bool(list(world.directory.parent.glob("state/pods/*/main/env"))))
        world.runtime.close()
        monkeypatch.undo()
        await world.restarted()
        (world.directory / "go").touch()
        await eventually(lambda: processes_of(made.metadata.uid) == [])
        assert told(world, "web.main") == []
        assert list(await world.runtime.refresh_pods()) == []
        await world.restarted()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.runtime.next_ended(), 0.3)
        starting.cancel()

    async def test_what_an_earlier_boot_left_is_cleared_away(self, world):
        live, main, _ = await started(world)
        await stop(world, main)
        world.runtime.close()
        file = directory(world, live.pod).parent / "pod.json"
        file.write_bytes(file.read_bytes().replace(Path("/proc/sys/kernel/random/boot_id").read_bytes().strip(), b"x"))
        await world.restarted()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.runtime.next_ended(), 0.3)
        assert not file.parent.exists()

    async def test_a_file_that_is_not_ours_is_named(self, world):
        live, _, _ = await started(world)
        file = directory(world, live.pod).parent / "pod.json"
        content = file.read_bytes()
        file.write_bytes(b"{")
        with pytest.raises(InvalidInput, match=r"pod\.json"):
            await world.restarted()
        file.write_bytes(content)
        await world.restarted()


def _delayed(world):
    """A program that becomes Python when the file ``go`` is there."""
    file = world.directory / "slow-python"
    go = world.directory / "go"
    file.write_text(f'#!/bin/sh\nwhile ! [ -e {go} ]; do sleep 0.02; done\nexec {sys.executable} "$@"\n')
    file.chmod(0o755)
    return str(file)


class TestIdentity:
    async def test_a_pid_that_was_used_again_is_left_alone(self, world):
        live, main, pid = await started(world)
        world.runtime.close()
        shim = file_pid(world, live.pod, "shim")
        with subprocess.Popen(["sleep", "1000"]) as bystander:
            try:
                for name in ("shim", "main"):
                    file = directory(world, live.pod) / name
                    file.write_text(file.read_text().replace(f"{shim} (", f"{bystander.pid} (", 1))
                    file.write_text(file.read_text().replace(f"{pid} (", f"{bystander.pid} (", 1))
                await world.restarted()
                assert await stop(world, main, 1) is None
                await world.runtime.kill_container(main)
                assert bystander.poll() is None
            finally:
                bystander.kill()
        await eventually(lambda: not alive(pid) and not alive(shim))

    def test_a_name_with_brackets_and_blanks_is_no_hindrance(self):
        fields = " ".join(str(number) for number in range(4, 53))
        assert process.parse_identity(f"42 (a) (b c) R {fields}\n") == (42, 22)

    @pytest.mark.parametrize(
        "text", ["", "42", "42 (sh) R 1 2 3\n", "42 (sh) R 1 1 1 0 -1 4194304 1 1 0 0 0 0 0 0 20 0 1 0 99 1"]
    )
    def test_half_a_line_is_none(self, text):
        assert process.parse_identity(text) is None
