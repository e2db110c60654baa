"""What a container as plain processes is given, and what it leaves behind."""

import asyncio
import os
import signal
from pathlib import Path

import pytest
from support.runtimes.pod_scripts import GATED, OBEDIENT, READY, STUBBORN, eventually, open_gate, shell, told
from support.runtimes.process_pods import (
    a_world,  # noqa: F401  (fixtures)
    alive,
    descriptors,
    directory,
    environment,
    file_pid,
    processes_of,
    started,
    status,
    stop,
)

from lastcall.model.pods import HTTPGetAction, LifecycleHandler
from lastcall_lab.processes import command_spec

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run processes as others")


class TestWhatAContainerIsGiven:
    async def test_no_descriptor_but_the_first_three(self, world):
        ours = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(ours, True)
        try:
            live, _, pid = await started(world)
        finally:
            os.close(ours)
        log = str(directory(world, live.pod)) + ".log"
        assert descriptors(pid) == {"0": "/dev/null", "1": log, "2": log}
        shim = descriptors(file_pid(world, live.pod, "shim"))
        assert set(shim.values()) == {"/dev/null", log}

    async def test_an_environment_of_its_own(self, world, monkeypatch):
        monkeypatch.setenv("AGENT_SECRET", "hidden")
        odd = [{"name": "dotted.name-1", "value": "a=b\nc"}, {"name": "PATH", "value": "/usr/bin:/bin"}]
        live, _, pid = await started(world, env=odd)
        home = command_spec.container_command(live.pod, live.pod.spec.containers[0]).env["HOME"]
        assert sorted(environment(pid)) == sorted(
            [
                "PATH=/usr/bin:/bin",
                f"HOME={home}",
                "LANG=C.UTF-8",
                f"POD_IP={live.pod.status.pod_ip}",
                "POD_NAME=web",
                "POD_NAMESPACE=default",
                f"POD_UID={live.pod.metadata.uid}",
                f"LASTCALL_CONTAINER={live.containers['main']}",
                f"OUT={world.directory}/web.main",
                "dotted.name-1=a=b\nc",
            ]
        )

    async def test_its_environment_can_be_read_by_nobody_else(self, world):
        live, _, _ = await started(world, env=[{"name": "PASSWORD", "value": "sesame-7391"}])
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                assert b"sesame-7391" not in entry.read_bytes()
            except OSError:
                pass
        assert directory(world, live.pod).parent.parent.stat().st_mode & 0o077 == 0

    async def test_signals_as_the_kernel_has_them_at_first(self, world):
        previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            _, _, pid = await started(world, f"{READY} exec sleep 1000")
        finally:
            signal.signal(signal.SIGHUP, previous)
        await eventually(lambda: status(pid)["Name"] == "sleep")
        # glibc's posix_spawn(3) leaves the two signals ignored that it keeps for itself, 32 and 33.
        masks = {int(status(pid)[name], 16) & ~0x1_8000_0000 for name in ("SigIgn", "SigBlk", "SigCgt")}
        assert masks == {0}

    async def test_a_session_of_its_own_and_its_shim_another(self, world):
        live, _, pid = await started(world)
        shim = file_pid(world, live.pod, "shim")
        assert os.getsid(pid) == os.getpgid(pid) == pid
        assert os.getsid(shim) == shim

    async def test_a_log_of_both_outputs(self, world):
        live, _, _ = await started(world, f"echo to stdout; echo to stderr >&2; {OBEDIENT}")
        log = directory(world, live.pod).parent / "main.log"
        assert log.read_text() == "to stdout\nto stderr\n"
        await stop(world, live.containers["main"])
        await world.runtime.tear_down_pod(live)
        assert log.exists()
        await world.runtime.remove_pod(live.pod.metadata.uid)
        assert not log.parent.exists()

    async def test_an_address_of_its_own(self, world):
        one, _, _ = await started(world, name="one")
        two, main, _ = await started(world, name="two")
        first, second = one.pod.status.pod_ip, two.pod.status.pod_ip
        assert first != second
        assert all(address.startswith("127.") and address != "127.0.0.1" for address in (first, second))
        await stop(world, main)
        await world.runtime.tear_down_pod(two)
        again, _, _ = await started(world, name="two", script=f"{READY} echo $POD_IP >> $OUT; sleep 1000")
        assert again.pod.status.pod_ip == second
        await eventually(lambda: told(world, "two.main")[-1] == second)

    async def test_http_get_goes_to_that_address(self, world):
        live, _, _ = await started(world)
        asked = []

        async def serve(reader, writer):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(serve, live.pod.status.pod_ip, 0) as server:
            port = server.sockets[0].getsockname()[1]
            hook = LifecycleHandler(http_get=HTTPGetAction(port=port, path="/leave"))
            assert (await world.runtime.run_hook(live, "main", hook, 60)).ok
        assert f"host: {live.pod.status.pod_ip}:{port}".encode() in asked[0]

    @as_root
    async def test_the_user_that_it_asks_for(self, world):
        world.directory.chmod(0o777)
        for parent in (parent for parent in world.directory.parents if "pytest-" in str(parent)):
            parent.chmod(parent.stat().st_mode | 0o011)
        context = {"runAsUser": 12345, "runAsGroup": 23456}
        groups = os.getgroups()
        os.setgroups([4])
        try:
            live, main, pid = await started(world, f"echo hello > /dev/stdout; {OBEDIENT}", securityContext=context)
        finally:
            os.setgroups(groups)
        assert status(pid)["Uid"].split() == ["12345"] * 4
        assert status(pid)["Gid"].split() == ["23456"] * 4
        assert status(pid)["Groups"].strip() == ""
        assert (directory(world, live.pod).parent / "main.log").read_text() == "hello\n"
        hook = shell('echo "$(cat /proc/self/status | grep -E "^[UG]id")" >> "$OUT"; echo said > /dev/stdout; exit 1')
        result = await world.runtime.run_hook(live, "main", hook, 60)
        assert result.message == "exec: exit code 1: said"
        assert [line.split()[1] for line in told(world, "web.main")[1:]] == ["12345", "23456"]
        assert await stop(world, main) == 7


class TestWhatAContainerLeavesBehind:
    async def test_background_children_are_killed(self, world):
        script = f'sleep 1000 & echo $! >> "$OUT.child"; {GATED} 5'
        live, main, _ = await started(world, script)
        child = int(told(world, "web.main.child")[0])
        assert alive(child)
        open_gate(world, "web.main")
        assert await world.runtime.next_ended() == (live.pod.metadata.uid, "main", 5)
        assert not alive(child)
        assert await stop(world, main) == 5

    async def test_daemons_that_moved_to_sessions_of_their_own_are_killed(self, world):
        """Twice forked, so that nothing but the shim ties them to their container."""
        script = f"""(setsid sh -c 'echo $$ >> "$OUT.child"; trap "" TERM HUP; sleep 1000' &) ; {GATED} 0"""
        live, _, main = await started(world, script)
        await eventually(lambda: bool(told(world, "web.main.child")))
        child = int(told(world, "web.main.child")[0])
        assert status(child)["PPid"] == str(file_pid(world, live.pod, "shim"))
        assert status(main)["PPid"] == status(child)["PPid"]
        open_gate(world, "web.main")
        await world.runtime.next_ended()
        assert not alive(child)

    async def test_kill_reaches_all_of_them(self, world):
        script = f"""setsid sh -c 'echo $$ >> "$OUT.child"; sleep 1000' & {READY} wait"""
        live, main, _ = await started(world, script)
        await eventually(lambda: bool(told(world, "web.main.child")))
        await world.runtime.kill_container(main)
        assert (await world.runtime.next_ended())[2] == 137
        assert processes_of(live.pod.metadata.uid) == []

    async def test_sigterm_reaches_the_main_process_alone(self, world):
        script = f"""sh -c 'trap "echo CHILD >> $OUT" TERM; echo up >> "$OUT.child"; while :; do sleep 1000 & wait $!; done' & {STUBBORN}"""
        _, main, _ = await started(world, script)
        await eventually(lambda: bool(told(world, "web.main.child")))
        assert await stop(world, main, 3) == 137
        assert told(world, "web.main") == ["ready", "TERM"]

    async def test_orphans_are_reaped_while_their_container_runs(self, world):
        script = f"""(sh -c 'echo $$ >> "$OUT.child"; sleep 0.3' &) ; {OBEDIENT}"""
        live, _, _ = await started(world, script)
        await eventually(lambda: bool(told(world, "web.main.child")))
        child = int(told(world, "web.main.child")[0])
        await eventually(lambda: not Path(f"/proc/{child}").exists())
        assert processes_of(live.pod.metadata.uid)

    async def test_a_shim_that_is_killed_costs_the_exit_code_only(self, world):
        live, main, _ = await started(world)
        os.kill(file_pid(world, live.pod, "shim"), signal.SIGKILL)
        await asyncio.sleep(0.2)
        (still,) = await world.runtime.refresh_pods()
        assert still.containers == {"main": main}
        await world.restarted()
        assert await stop(world, main) is None
        assert told(world, "web.main") == ["ready", "TERM"]
        await eventually(lambda: processes_of(live.pod.metadata.uid) == [])

    async def test_kill_works_without_a_shim_too(self, world):
        live, main, _ = await started(world, f"""setsid sh -c 'echo up >> "$OUT.child"; sleep 1000' & {STUBBORN}""")
        await eventually(lambda: bool(told(world, "web.main.child")))
        os.kill(file_pid(world, live.pod, "shim"), signal.SIGKILL)
        await world.runtime.kill_container(main)
        assert (await world.runtime.next_ended())[2] is None
        await eventually(lambda: processes_of(live.pod.metadata.uid) == [])

    async def test_no_zombie_of_ours_is_left(self, world):
        live, main, _ = await started(world)
        shim = file_pid(world, live.pod, "shim")
        await stop(world, main)
        assert not Path(f"/proc/{shim}").exists()
