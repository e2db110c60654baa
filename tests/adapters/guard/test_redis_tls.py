"""The providers redis and redis-sentinel over TLS, at real servers that ask for a client's certificate."""

import socket

import pytest
from support.guard import members
from support.guard.certificates import EXPIRED, FAULTS, SETTINGS, TlsFiles, read_refusals
from support.guard.provider_benches import wait_for
from support.guard.redis_servers import NEEDS_REDIS
from support.guard.sentinel_servers import NAME, SentinelServers

from lastcall.adapters.guard.redis_provider import RedisProviderFactory
from lastcall.adapters.guard.redis_sentinel_provider import RedisSentinelProviderFactory
from lastcall.ports.guard import PreparationProgress, PreparationReport

KINDS = ("redis", "redis-sentinel")
pytestmark = [NEEDS_REDIS, pytest.mark.xdist_group("redis-tls")]


class Bench:
    """The servers of one kind; ``whole`` is the master with the others."""

    def __init__(self, kind, directory, **how):
        self.files = how.pop("files", None) or TlsFiles(directory / "tls")
        tls = {"cert_file": self.files.certificate, "key_file": self.files.key, "ca_cert_file": self.files.ca}
        self.servers = SentinelServers(_free_port, directory, watched=kind == "redis-sentinel", **tls, **how)
        self._kind, self.whole = kind, members.member(0, net=SentinelServers.net)

    def provider(self, **settings):
        settings = {"port": self.servers.port, "tls": True, "timeoutSeconds": 3, **SETTINGS, **settings}
        if self._kind == "redis":
            factory = RedisProviderFactory()
        else:
            factory = RedisSentinelProviderFactory()
            settings |= {"masterName": NAME, "sentinelPort": self.servers.sentinel_port}
        return factory.make_provider(settings, members.Loopback(**self.files.secrets))

    async def refusals(self, **settings):
        return await read_refusals(self.provider(**settings), self.whole)


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module", params=KINDS)
def bench(request, tmp_path_factory):
    made = Bench(request.param, tmp_path_factory.mktemp(request.param))
    yield made
    made.servers.end()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_certificate_that_is_not_the_applications_holds_the_pod(bench, fault):
    settings, words = FAULTS[fault]
    await wait_for(lambda: bench.provider().check_health(bench.whole), lambda one: getattr(one, "is_healthy", False))
    for said in await bench.refusals(**settings):
        assert words.search(said)
    assert bench.servers.masters() == [0]


async def test_a_client_that_shows_no_certificate_is_told_what_is_missing(bench):
    for said in await bench.refusals(clientCertificateSecret=None):
        assert "it may ask for another client certificate" in said


async def test_a_certificate_that_has_expired_holds_the_pod(tmp_path):
    bench = Bench("redis", tmp_path, count=1, files=TlsFiles(tmp_path / "tls", expired=True))
    bench.whole = members.member(0, 1, net=SentinelServers.net)
    try:
        for said in await bench.refusals():
            assert EXPIRED in said
    finally:
        bench.servers.end()


async def test_a_master_hands_over(bench):
    await wait_for(lambda: bench.provider().check_health(bench.whole), lambda one: getattr(one, "is_healthy", False))
    provider = bench.provider()

    async def ask():
        report = await provider.check_progress(bench.whole)
        if report.progress is PreparationProgress.LOST:
            await provider.prepare(bench.whole)
        return report

    await wait_for(ask, lambda one: isinstance(one, PreparationReport) and one.progress is PreparationProgress.READY)
    assert bench.servers.masters() != [0]
    assert len(bench.servers.masters()) == 1
