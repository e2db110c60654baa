"""The provider redis-sentinel at real servers and Sentinels, in the states in which a member must not go."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest
from support.guard import members
from support.guard.provider_benches import wait_for
from support.guard.redis_servers import NEEDS_REDIS
from support.guard.sentinel_servers import NAME, SentinelServers
from support.guard.slow_link import SlowLink

from lastcall.adapters.guard.redis_handover import NOBODY
from lastcall.adapters.guard.redis_members import RedisDoor, RedisLogin
from lastcall.adapters.guard.redis_sentinel_provider import RedisSentinelProviderFactory, RedisSentinelSettings
from lastcall.adapters.guard.redis_sentinels import RedisSentinels
from lastcall.errors import InvalidInput, LastcallError, Unavailable
from lastcall.ports.guard import GuardedMember, PreparationProgress

pytestmark = [NEEDS_REDIS, pytest.mark.timeout(120)]
LOST, READY, STALLED = PreparationProgress.LOST, PreparationProgress.READY, PreparationProgress.STALLED
PREPARING = PreparationProgress.PREPARING
NET = SentinelServers.net


def member(number, of=3):
    return members.member(number, of, net=NET)


class Bench:
    """The servers; ``provider`` makes one as another process would, ``same`` as the same process."""

    def __init__(self, ports, directory, **how):
        self.servers = SentinelServers(ports, directory, **how)
        self._factory = RedisSentinelProviderFactory()

    def provider(self, factory=None, secrets=None, pods=(), **settings):
        settings = {
            "port": self.servers.port,
            "sentinelPort": self.servers.sentinel_port,
            "masterName": NAME,
        } | settings
        access = members.Loopback(pods=pods, **(secrets or {}))
        return (factory or RedisSentinelProviderFactory()).make_provider({"timeoutSeconds": 1, **settings}, access)

    def same(self, **settings):
        return self.provider(self._factory, **settings)

    async def wait_until_healthy(self, number=0):
        of = self.servers.count
        await wait_for(
            lambda: self.provider().check_health(member(number, of)), lambda one: getattr(one, "is_healthy", False)
        )

    async def fail_over_to_frozen_replica(self, number):
        """A Sentinel chooses no replica that has been silent for 0.5 s, which may pass on a busy machine."""

        async def begin():
            self.servers.freeze(number)
            said = self.servers.say(0, "SENTINEL", "FAILOVER", NAME, sentinel=True)
            if "NOGOODSLAVE" in said:
                self.servers.thaw(number)
            return said

        await wait_for(begin, lambda said: "OK" in str(said))

    async def health(self, number=0, **settings):
        return (await self.provider(**settings).check_health(member(number, self.servers.count))).message

    async def check(self, number=0, **settings):
        report = await self.provider(**settings).check_progress(member(number, self.servers.count))
        return report.progress, report.message

    async def prepare_until(self, *progress, number=0, make=None):
        """As the guard does."""
        one = member(number, self.servers.count)

        async def ask():
            report = await (make or self.provider)().check_progress(one)
            if report.progress is LOST and LOST not in progress:
                await (make or self.provider)().prepare(one)
            return report

        return await wait_for(ask, lambda found: getattr(found, "progress", None) in progress)


@pytest.fixture
async def bench(tmp_path, unused_tcp_port_factory):
    made = Bench(unused_tcp_port_factory, tmp_path)
    try:
        await made.wait_until_healthy()
        yield made
    finally:
        made.servers.end()


@pytest.fixture
async def pair(tmp_path, unused_tcp_port_factory):
    """Two servers, of which one has to take over, and three Sentinels in pods of their own."""
    made = Bench(unused_tcp_port_factory, tmp_path, count=2, failover_timeout=2000)
    made.servers.start_sentinel(2)
    made.servers.wait_until_known(3)
    pods = [members.pod(number, name="sentinel", net=NET, labels={"app": "sentinel"}) for number in range(3)]
    made.outside = {"pods": pods, "sentinelSelector": {"matchLabels": {"app": "sentinel"}}}
    try:
        await wait_for(
            lambda: made.provider(**made.outside).check_health(member(0, 2)),
            lambda one: getattr(one, "is_healthy", False),
        )
        yield made
    finally:
        made.servers.end()


class SentinelWriter:
    """Writes to whom a Sentinel names, and stays with him as long as he answers; counts what was acknowledged."""

    def __init__(self, servers, of=0):
        self._servers, self._of, self._stop = servers, of, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged, self.used = [], []

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)

    def _run(self):
        number = 0
        while not self._stop.is_set():
            with contextlib.suppress(OSError), self._connect() as made:
                made.settimeout(3)
                while not self._stop.is_set():
                    number += 1
                    made.sendall(b"SET key-%d 1\r\n" % number)
                    answer = made.recv(1000)
                    if not answer.startswith(b"+OK"):
                        raise OSError(answer)
                    self.acknowledged.append(number)
                    time.sleep(0.001)
            time.sleep(0.01)

    def _connect(self):
        said = self._servers.say(self._of, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME, sentinel=True).split("\r\n")
        self.used.append(said[2])
        return socket.create_connection((said[2], int(said[4])), 3)

    def count_lost(self):
        [master] = self._servers.masters()
        return sum(":0" in self._servers.say(master, "EXISTS", f"key-{number}") for number in self.acknowledged)


async def test_the_master_hands_over_and_no_acknowledged_write_is_lost(bench):
    assert await bench.check() == (LOST, "it is the master")
    with SentinelWriter(bench.servers) as client:
        await asyncio.sleep(0.3)
        report = await bench.prepare_until(READY)
        await asyncio.sleep(0.3)
    [master] = bench.servers.masters()
    assert (master != 0, report.message) == (True, f"redis-{master} is the master")
    assert len(set(client.used)) == 2, "it was told of the new master"
    assert client.acknowledged
    assert client.count_lost() == 0
    await bench.wait_until_healthy(0)
    assert (await bench.check(0))[0] is READY


async def test_a_replica_may_go_at_once_and_has_nothing_to_hand_over(bench):
    assert await bench.check(1) == (READY, "redis-0 is the master")
    await bench.provider().prepare(member(1))
    await bench.provider().cancel(member(1))
    assert bench.servers.masters() == [0]


async def test_a_preparation_goes_on_in_another_process(bench):
    """The first one died when the master refused writes already."""
    bench.servers.say(0, "REPLICAOF", *NOBODY)
    assert await bench.check() == (LOST, "it is the master, and refuses writes until another one is")
    await bench.provider().prepare(member(0))
    await bench.prepare_until(READY)
    assert bench.servers.masters() != [0]


async def test_a_cancel_lets_the_master_take_writes_again(bench):
    bench.servers.say(0, "REPLICAOF", *NOBODY)
    for _ in range(2):
        await bench.provider().cancel(member(0))
    assert bench.servers.masters() == [0]
    await bench.wait_until_healthy()


async def test_a_failover_that_is_under_way_is_not_stopped(bench):
    bench.servers.say(0, "SENTINEL", "FAILOVER", NAME, sentinel=True)
    with pytest.raises(Unavailable, match="a Sentinel fails over, and is not stopped"):
        await bench.provider().cancel(member(0))
    await bench.prepare_until(READY)


# -- Sentinels ---------------------------------------------------------------------------------------------------------


async def test_the_sentinel_of_the_member_does_not_count(bench):
    """Of three that are needed twice, two remain; with another one down a single one does."""
    bench.servers.kill("s2")
    assert "1 Sentinels answer without redis-0, and 2 of 3 that are known are needed; redis-2: " in await bench.health()
    progress, message = await bench.check()
    assert progress is STALLED
    assert "1 Sentinels answer without redis-0" in message
    await bench.provider().prepare(member(0))
    assert bench.servers.masters() == [0]


async def test_sentinels_of_their_own_may_be_one_short(pair):
    pair.servers.kill("s2")
    assert await pair.health(**pair.outside) == ""
    pair.servers.kill("s1")
    assert "1 Sentinels answer, and 2 of 3 that are known are needed; sentinel-1: " in await pair.health(**pair.outside)
    assert (await pair.check(1, **pair.outside))[0] is STALLED
    await pair.provider(**pair.outside).prepare(member(0, 2))
    assert pair.servers.masters() == [0]


async def test_a_quorum_that_cannot_be_reached_is_told(tmp_path, unused_tcp_port_factory):
    made = Bench(unused_tcp_port_factory, tmp_path, quorum=4)
    try:
        found = await wait_for(made.health, lambda text: "NOQUORUM" in str(text))
        assert "2 Sentinels answer without redis-0, and 4 of 3 that are known are needed" in found
        await made.provider().prepare(member(0))
        assert made.servers.masters() == [0]
    finally:
        made.servers.end()


async def test_a_group_that_no_sentinel_knows_is_an_error(bench):
    with pytest.raises(LastcallError, match="No such master with that name"):
        await bench.check(masterName="other")


# -- replicas ----------------------------------------------------------------------------------------------------------


async def test_with_a_replica_frozen_nothing_is_begun_and_no_other_may_go(bench):
    bench.servers.freeze(2)
    assert "redis-2: " in await bench.health()
    for number in (0, 1):
        progress, message = await bench.check(number)
        assert progress is STALLED
        assert "redis-2: " in message
    await bench.provider().prepare(member(0))
    assert bench.servers.masters() == [0]


async def test_a_replica_that_lags_holds_the_master(tmp_path, unused_tcp_port_factory):
    link = SlowLink(f"{NET}.1")
    port = unused_tcp_port_factory()
    await link.start(port)
    ports = iter([port, unused_tcp_port_factory()])
    made = Bench(lambda: next(ports), tmp_path, through=("127.63.7.77", link.port), failover_timeout=60_000)
    try:
        await made.wait_until_healthy()
        link.open.clear()
        await asyncio.to_thread(made.servers.say, 0, "SET", "large", "x" * 500_000)
        few = {"maxLagBytes": 100_000}
        found = await wait_for(lambda: made.health(**few), lambda text: "bytes behind" in str(text))
        assert "redis-1 is 5" in found
        await made.provider(**few).prepare(member(0))
        progress, message = await made.check(**few)
        assert (progress, "bytes behind" in message) == (STALLED, True)
        await made.same().prepare(member(0))  # many bytes, but not too many: they do not arrive while writes are paused
        assert made.servers.masters() == [0]
        report = await made.same().check_progress(member(0))
        assert report.progress in (PREPARING, STALLED), report
        assert report.message
        link.open.set()
        await made.prepare_until(READY)
    finally:
        made.servers.end()
        await link.end()


async def test_writes_that_come_after_the_pause_hold_the_promotion(bench, monkeypatch):
    """The master refuses writes, and a replica lacks some: it takes its role back."""
    from lastcall.adapters.guard import redis_handover

    monkeypatch.setattr(redis_handover, "ARRIVAL_SECONDS", 0.2)
    real, calls = redis_handover.RedisHandover._have_received, []

    async def have_received(self, master):
        calls.append(master.role)
        return await real(self, master) if master.role == "master" else False

    monkeypatch.setattr(redis_handover.RedisHandover, "_have_received", have_received)
    with pytest.raises(LastcallError, match="a replica has not received all writes"):
        await bench.same().prepare(member(0))
    assert "slave" in calls
    assert bench.servers.masters() == [0]
    await bench.wait_until_healthy()


async def test_a_failover_is_not_begun_twice_for_one_master(bench):
    """Another process may have been there since this one has decided."""
    await bench.prepare_until(READY)
    masters = bench.servers.masters()
    settings = RedisSentinelSettings(master_name=NAME)
    login = RedisLogin("", None)
    door = RedisDoor(members.Loopback(), settings, bench.servers.sentinel_port, login, "Sentinel")
    for number in range(3):
        await RedisSentinels(door, NAME).fail_over(member(number).pod, (f"{NET}.1", bench.servers.port))
        assert "failover_in_progress" not in bench.servers.say(number, "SENTINEL", "MASTER", NAME, sentinel=True)
    assert bench.servers.masters() == masters


async def test_a_failover_that_sentinel_gives_up_leaves_a_master_that_takes_writes(pair):
    """The only replica freezes when it is to be promoted."""
    provider = pair.same(**pair.outside)
    pair.servers.say(0, "REPLICAOF", *NOBODY)
    await pair.fail_over_to_frozen_replica(1)
    report = await wait_for(
        lambda: provider.check_progress(member(0, 2)), lambda one: getattr(one, "progress", None) is LOST
    )
    assert report.message == "it is the master, and refuses writes until another one is"
    await provider.prepare(member(0, 2))
    assert pair.servers.masters() == [0]
    assert "OK" in pair.servers.say(0, "SET", "k", "v")
    report = await provider.check_progress(member(0, 2))
    assert (report.progress, "redis-1: " in report.message) == (STALLED, True)


async def test_a_sentinel_that_is_silent_may_have_promoted_another(bench):
    bench.servers.say(0, "REPLICAOF", *NOBODY)
    bench.servers.kill("s2")
    with pytest.raises(Unavailable, match="does not take its role back"):
        await bench.provider().cancel(member(0))
    assert bench.servers.masters() == []


async def test_a_master_besides_holds_the_role_back(bench):
    bench.servers.say(0, "REPLICAOF", *NOBODY)
    bench.servers.say(1, "REPLICAOF", "NO", "ONE")
    with pytest.raises(Unavailable, match="does not take its role back"):
        await bench.provider().cancel(member(0))
    assert bench.servers.masters() == [1]


# -- members -----------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_no_pod_of_the_application_may_become_the_master(bench):
    two = GuardedMember(pod=member(0).pod, others=member(0).others[:1])
    found = await wait_for(lambda: bench.provider().check_health(two), lambda one: hasattr(one, "message"))
    assert f"{NET}.3:{bench.servers.port} is no pod of the application, and may become the master" in found.message
    alone = GuardedMember(pod=member(1).pod, others=member(1).others[1:])
    report = await bench.provider().check_progress(alone)
    assert report.progress is STALLED


async def test_a_password_that_is_refused_is_named_and_not_shown(tmp_path, unused_tcp_port_factory):
    made = Bench(unused_tcp_port_factory, tmp_path, password="right")
    try:
        wrong = {"secrets": {"auth": "wrong-one", "good": "right"}}
        for refused, other in (
            ("passwordSecret", "sentinelPasswordSecret"),
            ("sentinelPasswordSecret", "passwordSecret"),
        ):
            settings = {refused: {"name": "auth"}, other: {"name": "good"}}
            for question in ("check_health", "prepare", "check_progress", "cancel"):
                with pytest.raises(LastcallError, match="the password of Secret auth is refused") as caught:
                    await getattr(made.provider(**wrong, **settings), question)(member(0))
                assert "wrong-one" not in str(caught.value)
    finally:
        made.servers.end()


async def test_sentinels_with_a_wrong_password_of_the_master_hold_it(tmp_path, unused_tcp_port_factory):
    made = Bench(unused_tcp_port_factory, tmp_path, password="right", down_after=1000)
    secrets = {
        "secrets": {"auth": "right"},
        "passwordSecret": {"name": "auth"},
        "sentinelPasswordSecret": {"name": "auth"},
    }
    try:
        for number in range(3):
            said = made.servers.say(number, "SENTINEL", "SET", NAME, "auth-pass", "wrong", sentinel=True)
            assert "OK" in said
        await wait_for(lambda: made.health(**secrets), lambda text: "the master is" in str(text))
        await made.provider(**secrets).prepare(member(0))
        assert made.servers.masters() == [0]
    finally:
        made.servers.end()


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({}, "masterName: missing: must be given"),
        ({"masterName": "a b"}, 'masterName: "a b"'),
        ({"masterName": "a", "caSecret": {"name": "ca"}}, 'caSecret: "ca": needs tls: true'),
        ({"masterName": "a", "serverName": "b"}, 'serverName: "b": needs tls: true'),
        ({"masterName": "a", "sentinelSelector": {}}, "sentinelSelector: {}: needs at least one requirement"),
        ({"masterName": "a", "pauseMilliseconds": 6000}, "pauseMilliseconds: 6000: "),
        ({"masterName": "a", "sentinelPasword": 1}, "sentinelPasword: 1: unknown field"),
    ],
)
def test_settings_that_are_wrong_are_named(settings, violation):
    found = RedisSentinelProviderFactory().check_settings(settings)
    assert any(one.startswith(f"spec.provider.redis-sentinel.{violation}") for one in found), found
    with pytest.raises(InvalidInput):
        RedisSentinelProviderFactory().make_provider(settings, members.Loopback())
