"""The sample applications of docs/how-to/guard-providers.md, run as they stand there, and its tables."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields
from support.guard.members import Loopback, gone, member, pod

from lastcall.adapters.guard.exec_provider import ExecProviderFactory, ExecSettings
from lastcall.adapters.guard.http_provider import HttpProviderFactory, HttpSettings
from lastcall.errors import LastcallError

PAGE = (Path(__file__).parents[3] / "docs/how-to/guard-providers.md").read_text()
NET = "127.63.10"


def sample(language):
    [text] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return text


async def until(ask, progress):
    for _ in range(600):
        try:
            found = await ask()
        except LastcallError as error:
            found = error
        if getattr(found, "progress", None) and found.progress.value == progress:
            return found
        await asyncio.sleep(0.05)
    raise AssertionError(found)


@pytest.fixture
def worker(tmp_path, unused_tcp_port):
    """The sample for http as two pods; yields the provider."""
    script, running = tmp_path / "worker.py", []
    script.write_text(sample("python"))
    for number in range(2):
        one = pod(number, net=NET)
        environment = {
            "TOKEN": "s3cret",
            "POD_UID": one.metadata.uid,
            "POD_IP": one.status.pod_ip,
            "JOB_SECONDS": "0.3",
        }
        environment["PORT"] = str(unused_tcp_port)
        running.append(subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.DEVNULL))
    settings = {"port": unused_tcp_port, "path": "/guard", "tokenSecret": {"name": "guard-token"}, "reversible": True}
    factory = HttpProviderFactory()
    assert factory.check_settings(settings) == []
    yield lambda token="s3cret": factory.make_provider(settings, Loopback(**{"guard-token": token}))
    for process in running:
        process.kill()
        process.wait()


async def test_the_sample_for_http(worker):
    one, provider = member(0, of=2, net=NET), worker()
    assert (await until(lambda: provider.check_progress(one), "lost")).message == "not prepared"
    assert (await provider.check_health(one)).is_healthy
    with pytest.raises(LastcallError, match="403"):
        await worker("wrong").prepare(one)
    await provider.prepare(one)
    await worker().prepare(one)
    assert "jobs left" in (await until(lambda: provider.check_progress(one), "preparing")).message
    await until(lambda: provider.check_progress(one), "ready")
    await provider.cancel(one)
    await until(lambda: provider.check_progress(one), "lost")
    await provider.prepare(one)
    await until(lambda: provider.check_progress(one), "ready")
    await provider.release(gone(0, of=2, net=NET))
    await provider.release(gone(0, of=2, net=NET))


async def test_the_sample_for_exec(tmp_path):
    script = tmp_path / "guard.sh"
    script.write_text(sample("sh"))
    script.chmod(0o755)
    settings = {verb: [str(script), verb, "$(POD_UID)"] for verb in ("health", "prepare", "progress", "cancel")}
    provider = ExecProviderFactory().make_provider(
        {**settings, "reversible": True}, Loopback(environment={"STATE": str(tmp_path)})
    )
    one = member(0)
    assert (await provider.check_health(one)).message == "exit code 1: the worker does not run"
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs/1").touch()
    assert (await provider.check_health(one)).is_healthy
    assert (await provider.check_progress(one)).progress.value == "lost"
    await provider.prepare(one)
    await provider.prepare(one)
    found = await provider.check_progress(one)
    assert (found.progress.value, found.message) == ("preparing", "1 jobs left")
    (tmp_path / "jobs/1").unlink()
    assert (await provider.check_progress(one)).progress.value == "ready"
    await provider.cancel(one)
    await provider.cancel(one)
    await provider.release(gone(0))
    assert (await provider.check_progress(one)).progress.value == "lost"


@pytest.mark.parametrize(("name", "settings"), [("http", HttpSettings), ("exec", ExecSettings)])
def test_the_page_has_all_settings(name, settings):
    part = PAGE.partition(f"## `{name}`")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)", "".join(re.findall(r"^\| (`.*?) \|", part, re.MULTILINE))))
    assert {one.encode_name for one in fields(settings)} <= named
