"""The unmodified kubectl runs programs in pods of the lab that are processes, and in containers: input, terminal, copies."""

import asyncio
import os
import pty
import subprocess

import pytest
from support.kube.kubectl import Kubectl
from support.lab.real_machines import Lab
from support.runtimes import containerd_world

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("containerd-kubelet")]


@pytest.fixture(params=["processes", "containerd"])
async def kubectl(request, tmp_path):
    """Awaitable, in a lab with a pod ``web`` that runs."""
    if request.param == "containerd" and (reason := containerd_world.why_not()):
        pytest.skip(reason)
    async with Lab(tmp_path, request.param).up() as lab:
        await lab.add("web")
        await lab.until_ready("web")
        yield Awaited(Kubectl(tmp_path / "kubeconfig", tmp_path))


class Awaited:
    """``support.kube.kubectl.Kubectl`` beside a lab in the same loop."""

    def __init__(self, kubectl):
        self._kubectl = kubectl

    async def __call__(self, *arguments, **options):
        return await asyncio.to_thread(self._kubectl.run, *arguments, **options)

    async def typed(self, text, line, *more):
        """What a terminal shows when kubectl runs there and this is typed, and kubectl's exit code."""
        return await asyncio.to_thread(self._typed, text, self._kubectl._command(line, more))

    def _typed(self, text, command):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=self._kubectl.environment, start_new_session=True
        )
        os.close(theirs)
        shown = b""
        try:
            while True:
                try:
                    shown += os.read(ours, 65536)
                except OSError:
                    break
                if b"ready" in shown and text:
                    os.write(ours, text)
                    text = b""
            return shown.decode().replace("\r\n", "\n"), process.wait(60)
        finally:
            process.kill()
            os.close(ours)


async def test_input_goes_in_and_comes_out_again(kubectl):
    text = "to be said again\n" * 20_000
    said = await kubectl("exec -i web -- cat", given=text)
    assert (said.out == text, said.err, said.code) == (True, "", 0)
    said = await kubectl("exec -i web -- sh -c", "wc -c; echo err >&2; exit 3", given="x" * 5000)
    assert (said.out.strip(), said.code) == ("5000", 3)
    assert said.err == "err\ncommand terminated with exit code 3\n"


async def test_a_terminal(kubectl):
    script = "test -t 0 && test -t 1 && echo ready; read line; echo you typed $line; exit 4"
    shown, code = await kubectl.typed(b"something\n", "exec -it web -- sh -c", script)
    assert "you typed something\n" in shown
    assert code == 4


async def test_without_either(kubectl):
    said = await kubectl("exec web -- sh -c", "cat; echo $POD_NAME")
    assert (said.out, said.code) == ("web\n", 0)
    said = await kubectl("exec web -- no-such-program")
    assert said.code != 0
    assert "no-such-program" in said.err


async def test_files_are_copied(kubectl, tmp_path):
    here, back = tmp_path / "here", tmp_path / "back"
    here.write_bytes(bytes(range(256)) * 1000)
    there = tmp_path / "truth" / "there"  # the directory that the pod mounts
    said = await kubectl("cp", here, f"web:{there}")
    assert said.code == 0, said
    assert there.read_bytes() == here.read_bytes()
    said = await kubectl("cp", f"web:{there}", back)
    assert said.code == 0, said
    assert back.read_bytes() == here.read_bytes()
