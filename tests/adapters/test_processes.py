"""What is special to pods as plain processes; what they share with other runtimes is in ``contract``."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from support import process_agent
from support.pods import (
    GATED,
    OBEDIENT,
    READY,
    STUBBORN,
    container,
    eventually,
    open_gate,
    pod,
    says,
    shell,
    told,
)
from support.processes_world import processes_world

from lastcall.adapters.processes import process, spec
from lastcall.errors import InvalidInput, Unavailable
from lastcall.model.pods import ExecAction, Handler, HTTPGetAction

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can run processes as others")


@pytest.fixture
async def world(tmp_path):
    async with processes_world(tmp_path) as world:
        yield world


async def started(world, script=OBEDIENT, *, name="web", **fields):
    """A pod of one container ``main`` that is ready, and that container's id and pid."""
    live = await world.runtime.start(pod(world, name, container("main", script, **fields)))
    await eventually(lambda: told(world, f"{name}.main")[:1] == ["ready"])
    return live, live.containers["main"], file_pid(world, live.pod, "main")


def directory(world, pod, name="main"):
    metadata = pod.metadata
    pods = world.directory.parent / "state" / "pods"
    return pods / f"{metadata.namespace}_{metadata.name}_{metadata.uid}" / name


def file_pid(world, pod, file, name="main"):
    return int((directory(world, pod, name) / file).read_text().split(" ", 1)[0])


def status(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def alive(pid):
    """Whether it runs: a zombie does not."""
    try:
        return not status(pid)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


def descriptors(pid):
    return {entry.name: str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}


def environment(pid):
    return Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")[:-1]


def processes_of(uid):
    """The pids of all that runs with this pod's uid in its environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if f"POD_UID={uid}" in environment(entry.name):
                found.append(int(entry.name))
        except OSError:
            pass
    return found


async def stop(world, container_id, grace=10.0):
    return await asyncio.wait_for(world.runtime.stop(container_id, grace), 20)


@contextmanager
def agent(world, verb, *pods):
    """Another process that has these pods; it gets SIGKILL at the end, or before by the caller."""
    file = world.directory / "pods.json"
    file.write_bytes(msgspec.json.encode(pods))
    command = [sys.executable, process_agent.__file__, str(world.directory.parent / "state"), str(file), verb]
    with subprocess.Popen(command) as running:
        try:
            yield running
        finally:
            running.kill()


class TestTheAgentDies:
    async def test_containers_go_on_and_end_well_under_the_next_one(self, world):
        one = pod(world, "web", container("main", OBEDIENT))
        with agent(world, "start", one):
            await says(world, "web.main", "ready")
        await world.restarted()
        (live,) = await world.runtime.pods()
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
        assert [await world.runtime.ended(), await world.runtime.ended()] == [(uid, "b", 0), (uid, "a", 3)]
        (live,) = await world.runtime.pods()
        assert list(live.containers) == ["c"]

    async def test_sigterm_is_not_sent_again(self, world):
        with agent(world, "stop", pod(world, "web", container("main", STUBBORN))):
            await says(world, "web.main", "ready", "TERM")
        await world.restarted()
        (live,) = await world.runtime.pods()
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
        known = await world.runtime.pods()
        await asyncio.sleep(1)  # a shim on its way has arrived, or has seen that it must not
        uids = {live.pod.metadata.uid for live in known}
        assert all(processes_of(one.metadata.uid) == [] for one in pods if one.metadata.uid not in uids)
        for live in await world.runtime.pods():
            for container_id in live.containers.values():
                assert await stop(world, container_id) in (0, 7, 143)
        assert [processes_of(one.metadata.uid) for one in pods] == [[], [], []]
        lives = await asyncio.gather(*(world.runtime.start(one) for one in pods))
        assert [list(live.containers) for live in lives] == [["main"]] * 3

    async def test_a_shim_that_comes_too_late_starts_nothing(self, world, monkeypatch):
        """As if the agent had died after it had started the shim, and before that ran."""
        monkeypatch.setattr("lastcall.adapters.processes.container.sys.executable", _delayed(world))
        starting = asyncio.create_task(world.runtime.start(pod(world, "web", container("main", OBEDIENT))))
        await eventually(lambda: bool(list(world.directory.parent.glob("state/pods/*/main/env"))))
        world.runtime.close()
        monkeypatch.undo()
        await world.restarted()
        (world.directory / "go").touch()
        await asyncio.sleep(1)
        assert told(world, "web.main") == []
        assert list(await world.runtime.refresh()) == []
        await world.restarted()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.runtime.ended(), 0.3)
        starting.cancel()

    async def test_what_an_earlier_boot_left_is_cleared_away(self, world):
        live, main, _ = await started(world)
        await stop(world, main)
        world.runtime.close()
        file = directory(world, live.pod).parent / "pod.json"
        file.write_bytes(file.read_bytes().replace(Path("/proc/sys/kernel/random/boot_id").read_bytes().strip(), b"x"))
        await world.restarted()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.runtime.ended(), 0.3)
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
                await world.runtime.kill(main)
                assert bystander.poll() is None
            finally:
                bystander.kill()
        await eventually(lambda: not alive(pid) and not alive(shim))

    def test_a_name_with_brackets_and_blanks_is_no_hindrance(self):
        fields = " ".join(str(number) for number in range(4, 53))
        assert process.identity(f"42 (a) (b c) R {fields}\n") == (42, 22)

    @pytest.mark.parametrize(
        "text", ["", "42", "42 (sh) R 1 2 3\n", "42 (sh) R 1 1 1 0 -1 4194304 1 1 0 0 0 0 0 0 20 0 1 0 99 1"]
    )
    def test_half_a_line_is_none(self, text):
        assert process.identity(text) is None


class TestWhatAContainerLeavesBehind:
    async def test_background_children_are_killed(self, world):
        script = f'sleep 1000 & echo $! >> "$OUT.child"; {GATED} 5'
        live, main, _ = await started(world, script)
        child = int(told(world, "web.main.child")[0])
        assert alive(child)
        open_gate(world, "web.main")
        assert await world.runtime.ended() == (live.pod.metadata.uid, "main", 5)
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
        await world.runtime.ended()
        assert not alive(child)

    async def test_kill_reaches_all_of_them(self, world):
        script = f"""setsid sh -c 'echo $$ >> "$OUT.child"; sleep 1000' & {READY} wait"""
        live, main, _ = await started(world, script)
        await eventually(lambda: bool(told(world, "web.main.child")))
        await world.runtime.kill(main)
        assert (await world.runtime.ended())[2] == 137
        assert processes_of(live.pod.metadata.uid) == []

    async def test_sigterm_reaches_the_main_process_alone(self, world):
        script = f"""sh -c 'trap "echo CHILD >> $OUT" TERM; echo up >> "$OUT.child"; while :; do sleep 1000 & wait $!; done' & {STUBBORN}"""
        _, main, _ = await started(world, script)
        await eventually(lambda: bool(told(world, "web.main.child")))
        assert await stop(world, main, 1) == 137
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
        (still,) = await world.runtime.refresh()
        assert still.containers == {"main": main}
        await world.restarted()
        assert await stop(world, main) is None
        assert told(world, "web.main") == ["ready", "TERM"]
        await eventually(lambda: processes_of(live.pod.metadata.uid) == [])

    async def test_kill_works_without_a_shim_too(self, world):
        live, main, _ = await started(world, f"""setsid sh -c 'echo up >> "$OUT.child"; sleep 1000' & {STUBBORN}""")
        await eventually(lambda: bool(told(world, "web.main.child")))
        os.kill(file_pid(world, live.pod, "shim"), signal.SIGKILL)
        await world.runtime.kill(main)
        assert (await world.runtime.ended())[2] is None
        await eventually(lambda: processes_of(live.pod.metadata.uid) == [])

    async def test_no_zombie_of_ours_is_left(self, world):
        live, main, _ = await started(world)
        shim = file_pid(world, live.pod, "shim")
        await stop(world, main)
        assert not Path(f"/proc/{shim}").exists()


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
        home = spec.command(live.pod, live.pod.spec.containers[0]).env["HOME"]
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
        await world.runtime.finish(live)
        assert log.exists()
        await world.runtime.remove(live.pod.metadata.uid)
        assert not log.parent.exists()

    async def test_an_address_of_its_own(self, world):
        one, _, _ = await started(world, name="one")
        two, main, _ = await started(world, name="two")
        first, second = one.pod.status.pod_ip, two.pod.status.pod_ip
        assert first != second
        assert all(address.startswith("127.") and address != "127.0.0.1" for address in (first, second))
        await stop(world, main)
        await world.runtime.finish(two)
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
            hook = Handler(http_get=HTTPGetAction(port=port, path="/leave"))
            assert (await world.runtime.run_hook(live, "main", hook, 10)).ok
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
        result = await world.runtime.run_hook(live, "main", hook, 10)
        assert result.message == "exec: exit code 1: said"
        assert [line.split()[1] for line in told(world, "web.main")[1:]] == ["12345", "23456"]
        assert await stop(world, main) == 7


class TestHooks:
    async def test_the_containers_path_is_for_its_own_programs_only(self, world):
        live, _, _ = await started(
            world,
            env=[{"name": "PATH", "value": "/nowhere"}],
            command=["/bin/sh", "-c", "echo ready >> $OUT; while :; do :; done"],
        )
        hook = Handler(exec=ExecAction(command=("/bin/sh", "-c", "echo $PATH; exit 1")))
        assert (await world.runtime.run_hook(live, "main", hook, 10)).message == "exec: exit code 1: /nowhere"

    async def test_a_command_that_cannot_be_is_told(self, world):
        live, _, _ = await started(world)
        hook = Handler(exec=ExecAction(command=("echo", "a\0b")))
        assert (await world.runtime.run_hook(live, "main", hook, 10)).message == "exec: embedded null byte"

    async def test_children_of_a_hook_end_with_it(self, world):
        live, _, _ = await started(world)
        hook = shell('sleep 1000 & echo $! >> "$OUT.hook"; exit 0')
        assert (await world.runtime.run_hook(live, "main", hook, 10)).ok
        await eventually(lambda: not alive(int(told(world, "web.main.hook")[0])))

    async def test_children_of_a_hook_end_at_its_limit(self, world):
        live, _, _ = await started(world)
        hook = shell('sleep 1000 & echo $! >> "$OUT.hook"; wait')
        assert (await world.runtime.run_hook(live, "main", hook, 0.5)).timed_out
        await eventually(lambda: not alive(int(told(world, "web.main.hook")[0])))

    async def test_a_hook_that_talks_much_is_not_held_up_and_its_last_words_are_quoted(self, world):
        live, _, _ = await started(world)
        hook = shell("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; exit 9")
        result = await world.runtime.run_hook(live, "main", hook, 20)
        assert result.message.startswith("exec: exit code 9: ")
        assert result.message.endswith("line 19999")
        assert len(result.message) < 1100

    async def test_a_hook_that_dies_of_a_signal_tells_it_as_shells_do(self, world):
        live, _, _ = await started(world)
        assert (await world.runtime.run_hook(live, "main", shell("kill -KILL $$"), 10)).message == "exec: exit code 137"

    async def test_hooks_leave_no_descriptor_open(self, world):
        live, _, _ = await started(world)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for script in ("exit 0", "exit 1", "sleep 5"):
            await world.runtime.run_hook(live, "main", shell(script), 0.5)
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestStart:
    async def test_a_pod_that_runs_is_not_started_again(self, world):
        live, _, _ = await started(world)
        with pytest.raises(InvalidInput, match="runs already"):
            await world.runtime.start(live.pod)
        assert list((await world.runtime.pods())[0].containers) == ["main"]

    async def test_a_pod_that_has_ended_is_started_again_as_another(self, world):
        live, main, _ = await started(world, STUBBORN)
        assert await stop(world, main, 0.2) == 137
        again = await world.runtime.start(live.pod)
        assert again.containers["main"] != main
        assert await stop(world, main) is None
        await says(world, "web.main", "ready", "TERM", "ready")
        assert await stop(world, again.containers["main"], 1) == 137
        assert told(world, "web.main") == ["ready", "TERM", "ready", "TERM"]

    async def test_one_who_cancels_leaves_nothing(self, world):
        made = pod(world, "web", container("main", OBEDIENT), init=[container("slow", f"{READY} sleep 1000")])
        starting = asyncio.create_task(world.runtime.start(made))
        await says(world, "web.slow", "ready")
        assert [list(live.containers) for live in await world.runtime.pods()] == [["slow"]]
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert processes_of(made.metadata.uid) == []
        assert list(await world.runtime.pods()) == []

    async def test_one_who_removes_it_meanwhile_leaves_nothing(self, world):
        made = pod(world, "web", container("main", OBEDIENT), init=[container("slow", f"{READY} sleep 1000")])
        starting = asyncio.create_task(world.runtime.start(made))
        await says(world, "web.slow", "ready")
        await world.runtime.remove(made.metadata.uid)
        with pytest.raises(Unavailable):
            await starting
        assert processes_of(made.metadata.uid) == []

    async def test_the_end_of_an_init_container_is_no_news(self, world):
        init = [container("first", "exit 0")]
        live = await world.runtime.start(pod(world, "web", container("main", f"{GATED} 1"), init=init))
        open_gate(world, "web.main")
        assert await world.runtime.ended() == (live.pod.metadata.uid, "main", 1)

    async def test_a_program_that_is_gone_in_the_last_moment_ends_with_127(self, world):
        program = world.directory / "program"
        program.write_text("#!/no/such/interpreter\n")
        program.chmod(0o755)
        live = await world.runtime.start(pod(world, "web", {"name": "main", "command": [str(program)]}))
        assert (await world.runtime.ended())[2] == 127
        log = directory(world, live.pod).parent / "main.log"
        assert log.read_text() == f"lastcall: {program}: No such file or directory\n"

    async def test_idle_containers_cost_nothing(self, world):
        for number in range(5):
            await started(world, name=f"pod-{number}")
        begin = time.process_time()
        await asyncio.sleep(1)
        assert time.process_time() - begin < 0.1

    async def test_a_refused_pod_leaves_nothing(self, world):
        with pytest.raises(InvalidInput):
            await world.runtime.start(pod(world, "web", {"name": "main"}))
        assert list((world.directory.parent / "state" / "pods").iterdir()) == []
