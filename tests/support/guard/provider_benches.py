"""Applications of three members whose first one has work of its own, and providers of them, for the contract."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from support.guard import etcd_servers, members, patroni_servers, rabbitmq_servers
from support.guard import placement_driver_servers as placement
from support.guard.redis_servers import Servers
from support.guard.sentinel_servers import NAME, SentinelServers

from lastcall.adapters.guard.etcd_provider import EtcdProviderFactory
from lastcall.adapters.guard.exec_provider import ExecProviderFactory
from lastcall.adapters.guard.http_provider import HttpProviderFactory
from lastcall.adapters.guard.patroni_provider import PatroniProviderFactory
from lastcall.adapters.guard.rabbitmq_provider import RabbitmqProviderFactory
from lastcall.adapters.guard.redis_provider import RedisProviderFactory
from lastcall.adapters.guard.redis_sentinel_provider import RedisSentinelProviderFactory
from lastcall.adapters.guard.tikv_provider import TikvProviderFactory
from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.fakes.guarded_application import GuardedApplication

PAGE = Path(__file__).parents[3] / "docs/how-to/guard-providers.md"
SECRET = "s3cret"


def read_sample(language):
    """A program of the how-to page."""
    [text] = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return text


class Bench:
    """``provider`` makes one as another process would; ``silence`` has nobody answer any more.

    ``shares`` is the fixture of the servers that it is made with; without one it starts its own in a directory.
    """

    net = "127.63.7"
    shares = ""

    @property
    def member(self):
        return members.member(0, net=self.net)

    @property
    def gone(self):
        return members.gone(0, net=self.net)

    def silence(self):
        for process in self.processes:
            os.kill(process.pid, signal.SIGSTOP)

    def end(self):
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


class ModelBench(Bench):
    """The model that the guard's own tests rely on, in real time."""

    def __init__(self, directory, ports):
        self._model = GuardedApplication(SystemClock(), lambda: 3)
        self._model.seconds, self._model.delay = 0.3, 0.01

    def provider(self):
        return self._model

    def silence(self):
        self._model.is_silent = True

    def end(self):
        pass


class HttpBench(Bench):
    """The sample application of the page."""

    net = "127.63.11"

    def __init__(self, directory, ports):
        script, self._port = directory / "worker.py", ports()
        script.write_text(read_sample("python"))
        self.processes = [self._start(script, members.pod(number, net=self.net)) for number in range(3)]

    def _start(self, script, pod):
        environment = {"TOKEN": SECRET, "POD_UID": pod.metadata.uid, "POD_IP": pod.status.pod_ip}
        environment |= {"PORT": str(self._port), "JOB_SECONDS": "0.2"}
        return subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.DEVNULL)

    def provider(self):
        settings = {"port": self._port, "tokenSecret": {"name": "token"}, "reversible": True, "timeoutSeconds": 1}
        return HttpProviderFactory().make_provider(settings, members.Loopback(token=SECRET))


class ExecBench(Bench):
    """The sample script of the page, beside a worker that ends its job when it is told to drain."""

    WORKER = "mkdir -p $STATE/jobs; touch $STATE/jobs/1; while :; do [ ! -e $STATE/drain ] || rm -f $STATE/jobs/1; sleep 0.1; done"

    def __init__(self, directory, ports):
        self._script, self._access = directory / "guard.sh", members.Loopback(environment={"STATE": str(directory)})
        self._script.write_text(read_sample("sh"))
        self._script.chmod(0o755)
        self.processes = [subprocess.Popen(["sh", "-c", self.WORKER], env={**os.environ, "STATE": str(directory)})]

    def provider(self):
        settings = {
            verb: [str(self._script), verb, "$(POD_UID)"] for verb in ("health", "prepare", "progress", "cancel")
        }
        return ExecProviderFactory().make_provider({**settings, "reversible": True}, self._access)

    def silence(self):
        self._access.is_up = False


class RedisBench(Bench):
    """Real servers with a password."""

    def __init__(self, directory, ports):
        self._servers = Servers(ports(), directory)
        for number in range(3):
            words = ("--requirepass", SECRET, "--masterauth", SECRET)
            self._servers.start(number, *words, master=0 if number else None)
        self.processes = self._servers.processes.values()
        self._factory = RedisProviderFactory()

    def provider(self):
        settings = {"port": self._servers.port, "passwordSecret": {"name": "auth"}, "timeoutSeconds": 1}
        return self._factory.make_provider(settings, members.Loopback(auth=SECRET))


class RedisSentinelBench(Bench):
    """Real servers and Sentinels with a password; each pod has one of both."""

    net = SentinelServers.net

    def __init__(self, directory, ports):
        self._servers = SentinelServers(ports, directory, password=SECRET)
        self.processes = self._servers.processes.values()

    def provider(self):
        settings = {"port": self._servers.port, "sentinelPort": self._servers.sentinel_port, "masterName": NAME}
        settings |= {"passwordSecret": {"name": "auth"}, "sentinelPasswordSecret": {"name": "auth"}}
        return RedisSentinelProviderFactory().make_provider(
            {**settings, "timeoutSeconds": 1}, members.Loopback(auth=SECRET)
        )


class EtcdBench(Bench):
    """Real servers with a password."""

    net = etcd_servers.NET

    def __init__(self, directory, ports):
        self._servers = etcd_servers.EtcdServers(ports, directory, password=SECRET)
        self.processes = self._servers.processes.values()

    def provider(self):
        settings = {"port": self._servers.port, "passwordSecret": {"name": "auth"}, "timeoutSeconds": 1}
        return EtcdProviderFactory().make_provider(settings, members.Loopback(auth=SECRET))


class PatroniBench(Bench):
    """Real servers with a password, which all tests share: the member with work is the one that leads at the beginning."""

    net = patroni_servers.NET
    shares = "patroni_servers"

    def __init__(self, servers):
        self._servers = servers
        self._leader = servers.make_whole()

    @property
    def member(self):
        return members.member(self._leader, net=self.net)

    @property
    def gone(self):
        return members.gone(self._leader, net=self.net)

    def provider(self):
        settings = {"port": self._servers.port, "passwordSecret": {"name": "auth"}, "timeoutSeconds": 1}
        settings["username"] = patroni_servers.USER
        return PatroniProviderFactory().make_provider(settings, members.Loopback(auth=SECRET))

    def silence(self):
        self._servers.freeze(0, 1, 2)

    def end(self):
        self._servers.thaw()


class RabbitmqBench(Bench):
    """Real servers with a password, which all tests share, and their command."""

    net = rabbitmq_servers.NET
    shares = "rabbitmq_servers"

    def __init__(self, servers):
        self._servers, self._factory = servers, RabbitmqProviderFactory()
        servers.make_whole()

    def provider(self):
        settings = {"port": self._servers.port, "passwordSecret": {"name": "auth"}, "timeoutSeconds": 3}
        settings["username"] = rabbitmq_servers.USER
        return self._factory.make_provider(settings, self._servers.access(auth=SECRET))

    def silence(self):
        self._servers.freeze(0, 1, 2)

    def end(self):
        self._servers.thaw()


class TikvBench(Bench):
    """Three stores, and an emulated Placement Driver."""

    net = placement.NET

    def __init__(self, directory, ports):
        self._servers = placement.PlacementDriverServers(ports())
        self._factory = TikvProviderFactory()

    def provider(self):
        settings = {"pdSelector": placement.SELECTOR, "pdPort": self._servers.port, "timeoutSeconds": 1}
        pods = [placement.pd_pod(number) for number in range(3)]
        return self._factory.make_provider(settings, members.Loopback(pods=pods))

    def silence(self):
        self._servers.frozen.update(range(3))

    def end(self):
        self._servers.end()


BENCHES = {
    "model": ModelBench,
    "http": HttpBench,
    "exec": ExecBench,
    "redis": RedisBench,
    "redis-sentinel": RedisSentinelBench,
    "etcd": EtcdBench,
    "patroni": PatroniBench,
    "rabbitmq": RabbitmqBench,
    "tikv": TikvBench,
}
PROGRAMS = {"redis": "redis-server", "redis-sentinel": "redis-server", "etcd": "etcd"}
"""Which program a bench needs."""


async def wait_for(ask, holds):
    """Asks again and again, for a minute; an error is an answer."""
    for _ in range(600):
        try:
            found = await ask()
        except Exception as error:
            found = error
        if holds(found):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)
