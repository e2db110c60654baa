"""The sidecar of docs/how-to/outside-registry.md, run as it stands there, beside a small registry with Consul's requests."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import yaml
from support.guard.members import Loopback, gone, member, pod

from lastcall.adapters.guard.http_provider import HttpProviderFactory
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.guard_policy import GuardPolicy

PAGE = (Path(__file__).parents[3] / "docs/how-to/outside-registry.md").read_text()
NET = "127.63.12"
AGENT, HEALTH = "/v1/agent/service/", "/v1/health/service/web"


class Registry:
    """``instances`` by id: whether each is in maintenance. ``is_down``: it answers nothing but 500."""

    def __init__(self):
        self.instances, self.is_down, self.registered = {}, False, []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                assert self.path == f"{HEALTH}?passing=true"
                self.say([{"Service": {"ID": one}} for one, is_out in registry.instances.items() if not is_out])

            def do_PUT(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                whole = urlsplit(self.path)
                verb, _, id_ = whole.path.removeprefix(AGENT).partition("/")
                self.say(
                    None if not registry.is_down and registry.change(verb, id_, parse_qs(whole.query), body) else 0
                )

            def say(self, what):
                data = b"" if what is None else json.dumps(what).encode()
                self.send_response(500 if registry.is_down or what == 0 else 200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def change(self, verb, id_, query, body):
        """Whether it is a request that the registry knows."""
        if verb == "register":
            said = json.loads(body)
            self.registered.append(said)
            self.instances[said["ID"]] = False
        elif id_ not in self.instances:
            return False
        elif verb == "deregister":
            del self.instances[id_]
        elif verb == "maintenance":
            self.instances[id_] = query["enable"] == ["true"]
        return True


async def until(condition):
    for _ in range(1200):
        if found := await condition():
            return found
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come to pass")


@pytest.fixture
def registry():
    found = Registry()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def sidecars(tmp_path, registry, unused_tcp_port):
    """The sidecars of two pods."""
    [text] = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    script, running = tmp_path / "registry.py", []
    script.write_text(text)
    for number in range(2):
        one = pod(number, net=NET)
        environment = {
            "TOKEN": "s3cret",
            "REGISTRY": f"http://127.0.0.1:{registry.server.server_port}",
            "SERVICE": "web",
            "POD_IP": one.status.pod_ip,
            "POD_UID": one.metadata.uid,
            "CACHE_SECONDS": "0.3",
            "PORT": str(unused_tcp_port),
        }
        running.append(subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.DEVNULL))
    yield running
    for process in running:
        process.kill()
        process.wait()


@pytest.fixture
async def provider(sidecars, registry, unused_tcp_port):
    settings = {"port": unused_tcp_port, "tokenSecret": {"name": "guard-token"}, "reversible": True}
    factory = HttpProviderFactory()
    assert factory.check_settings(settings) == []
    found = factory.make_provider(settings, Loopback(**{"guard-token": "s3cret"}))

    async def answers():
        try:
            return all([await found.check_progress(member(number, of=2, net=NET)) for number in range(2)])
        except LastcallError:
            return False

    await until(answers)
    return found


def uid(number):
    return pod(number, net=NET).metadata.uid


async def test_a_pod_is_unlisted_before_it_goes_and_listed_again_if_it_stays(registry, sidecars, provider):
    one = member(0, of=2, net=NET)
    assert registry.instances == {uid(0): False, uid(1): False}
    assert {said["Address"]: said["Port"] for said in registry.registered} == {f"{NET}.1": 8080, f"{NET}.2": 8080}
    assert (await provider.check_health(one)).is_healthy
    assert (await provider.check_progress(one)).progress.value == "lost"

    await provider.prepare(one)
    await provider.prepare(one)
    assert registry.instances == {uid(0): True, uid(1): False}
    assert (await provider.check_progress(one)).progress.value in ("preparing", "ready")

    async def is_ready():
        return (await provider.check_progress(one)).progress.value == "ready"

    await until(is_ready)
    other = await provider.check_health(member(1, of=2, net=NET))
    assert not other.is_healthy, "the last one is not taken out"

    registry.instances[uid(0)] = False
    assert (await provider.check_progress(one)).progress.value == "lost", "the registry forgot it"
    await provider.prepare(one)
    await provider.cancel(one)
    assert registry.instances == {uid(0): False, uid(1): False}

    sidecars[0].send_signal(signal.SIGTERM)
    await asyncio.to_thread(sidecars[0].wait, 60)
    assert registry.instances == {uid(1): False}
    await provider.release(gone(0, of=2, net=NET))
    assert registry.instances == {uid(1): False}


async def test_a_registry_that_is_down_is_unavailable_and_not_ready(registry, provider):
    registry.is_down = True
    for ask in (provider.check_progress, provider.check_health, provider.prepare):
        with pytest.raises(Unavailable, match="503"):
            await ask(member(0, of=2, net=NET))


def test_the_manifests_of_the_page():
    sidecar, policy = (
        yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    )
    read = msgspec.convert(policy, GuardPolicy)
    assert HttpProviderFactory().check_settings(read.spec.provider["http"]) == []
    [container] = sidecar["spec"]["initContainers"]
    given = {one["name"] for one in container["env"]}
    assert set(re.findall(r'os\.environ\["(\w+)"\]', PAGE)) <= given
