"""The provider redis: with real servers on loopback, and with servers that are none."""

import asyncio
import contextlib
import os
import signal

import pytest
from support.guard.members import Loopback, member, pod
from support.guard.redis_servers import NEEDS_REDIS, Servers
from support.guard.slow_link import SlowLink

from lastcall.adapters.guard.redis_provider import RedisProviderFactory
from lastcall.adapters.guard.redis_state import parse_info
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.ports.guard import GuardedMember


@pytest.fixture
async def servers(tmp_path, unused_tcp_port):
    made = Servers(unused_tcp_port, tmp_path)
    made.start(0)
    for number in (1, 2):
        made.start(number, master=0)
    yield made
    made.end()


def provider(port, secrets=None, **settings):
    return RedisProviderFactory().make_provider({"port": port, **settings}, Loopback(**(secrets or {})))


async def until(ask, holds, seconds=60):
    for _ in range(seconds * 10):
        found = await ask()
        if holds(found):
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


async def role(servers, one):
    reader, writer = await asyncio.open_connection(one.status.pod_ip, servers.port)
    writer.write(b"INFO replication\r\n")
    text = await reader.readuntil(b"connected_slaves")
    writer.transport.abort()
    return text.partition(b"role:")[2].split()[0].decode()


async def check_and_prepare(redis, one):
    """What the guard does: whatever does not stand is prepared again."""
    report = await redis.check_progress(one)
    if report.progress.value == "lost":
        with contextlib.suppress(LastcallError):
            await redis.prepare(one)
    return report


async def healthy(redis, number):
    async def ask():
        try:
            return await redis.check_health(member(number))
        except LastcallError as error:
            return error

    return await until(ask, lambda found: getattr(found, "is_healthy", False))


def says(*progress):
    return lambda report: report.progress.value in progress


@NEEDS_REDIS
async def test_the_master_hands_over_to_the_replica_that_has_most_and_the_others_follow(servers):
    redis = provider(servers.port, failoverMilliseconds=10_000)
    await healthy(redis, 0)
    assert (await redis.check_progress(member(0))).progress.value == "lost", "nothing is prepared yet"
    await redis.prepare(member(0))
    found = await until(lambda: redis.check_progress(member(0)), lambda one: one.progress.value != "preparing")
    assert (found.progress.value, "has it as master still" in found.message) == ("lost", True)
    await redis.prepare(member(0))
    await redis.prepare(member(0))
    await until(lambda: redis.check_progress(member(0)), says("ready"))
    await healthy(redis, 0)
    masters = [one.metadata.name for one in (pod(1), pod(2)) if await role(servers, one) == "master"]
    assert len(masters) == 1
    await redis.release(member(0))
    await redis.cancel(member(0))


@NEEDS_REDIS
async def test_a_replica_is_ready_at_once(servers):
    redis = provider(servers.port)
    await healthy(redis, 1)
    await redis.prepare(member(1))
    assert (await redis.check_progress(member(1))).message == "redis-0 is the master"


@NEEDS_REDIS
async def test_frozen_replicas_are_no_ones_to_hand_over_to(servers):
    redis = provider(servers.port, timeoutSeconds=1)
    await healthy(redis, 0)
    for number in (1, 2):
        os.kill(servers.processes[number].pid, signal.SIGSTOP)
    assert (await redis.check_health(member(0))).message == "redis-1, redis-2: no answer"
    report = await until(lambda: redis.check_progress(member(0)), says("stalled"))
    assert "no replica follows it" in report.message
    await redis.prepare(member(0))
    assert (await redis.check_progress(member(0))).progress.value == "stalled"
    for number in (1, 2):
        os.kill(servers.processes[number].pid, signal.SIGCONT)
    await until(lambda: redis.check_progress(member(0)), says("lost"))
    await redis.prepare(member(0))


@NEEDS_REDIS
async def test_a_master_that_is_gone_holds_its_replicas(servers):
    redis = provider(servers.port, timeoutSeconds=1)
    await healthy(redis, 1)
    servers.processes[0].kill()
    servers.processes[0].wait()
    assert not (await redis.check_health(member(1))).is_healthy
    assert (await redis.check_progress(member(1))).progress.value == "stalled"
    with pytest.raises(Unavailable):
        await redis.prepare(member(0))


@NEEDS_REDIS
async def test_a_password_from_a_secret(tmp_path, unused_tcp_port):
    made = Servers(unused_tcp_port, tmp_path)
    try:
        made.start(0, "--requirepass", "right", "--masterauth", "right")
        made.start(1, "--requirepass", "right", "--masterauth", "right", master=0)
        settings = {"passwordSecret": {"name": "auth"}}
        redis = provider(made.port, {"auth": "right"}, **settings)
        await until(lambda: _health(redis), lambda found: getattr(found, "is_healthy", False))
        with pytest.raises(LastcallError, match="the password of Secret auth is refused") as caught:
            await provider(made.port, {"auth": "wrong-one"}, **settings).check_progress(member(0, of=2))
        assert "wrong-one" not in str(caught.value)
        with pytest.raises(LastcallError, match="NOAUTH"):
            await provider(made.port).check_progress(member(0, of=2))
    finally:
        made.end()


async def _health(redis):
    try:
        return await redis.check_health(member(0, of=2))
    except LastcallError as error:
        return error


@NEEDS_REDIS
async def test_a_redis_cluster_is_for_another_provider(tmp_path, unused_tcp_port_factory):
    made, bus = Servers(unused_tcp_port_factory(), tmp_path), unused_tcp_port_factory()
    try:
        for number in range(2):
            made.start(number, "--cluster-enabled", "yes", "--cluster-port", bus)

        async def ask():
            return await provider(made.port).check_health(member(0, of=2))

        found = await until(ask, lambda one: "no answer" not in one.message)
        assert "Redis Cluster" in found.message
    finally:
        made.end()


# -- what holds a master back -------------------------------------------------------------------------------------------


@NEEDS_REDIS
async def test_a_member_without_others_has_nobody_to_hand_over_to(servers):
    redis = provider(servers.port)
    await healthy(redis, 0)
    assert (await redis.check_health(member(0, of=1))).message == "there is no other member"
    await redis.prepare(member(0, of=1))
    assert (await redis.check_progress(member(0, of=1))).progress.value == "stalled"


@NEEDS_REDIS
async def test_a_replica_stays_while_another_one_is_frozen(servers):
    redis = provider(servers.port, timeoutSeconds=1)
    await healthy(redis, 1)
    os.kill(servers.processes[2].pid, signal.SIGSTOP)
    assert (await redis.check_health(member(1))).message == "redis-2: no answer"
    with pytest.raises((TimedOut, Unavailable)):
        await redis.check_progress(member(1))
    assert (await redis.check_health(member(2))).message == "redis-2: no answer"
    os.kill(servers.processes[2].pid, signal.SIGCONT)
    await healthy(redis, 1)


@NEEDS_REDIS
async def test_under_sentinels_nothing_is_begun(servers, unused_tcp_port_factory):
    redis = provider(servers.port)
    await healthy(redis, 0)
    config = servers.directory / "sentinel.conf"
    config.write_text(f"sentinel monitor shop {pod(0).status.pod_ip} {servers.port} 1\n")
    port = unused_tcp_port_factory()
    servers.run("sentinel", config, "--sentinel", "--port", port, "--bind", "127.63.7.99")

    async def ask():
        return await redis.check_health(member(0))

    found = await until(ask, lambda one: not one.is_healthy)
    assert "is watched by Sentinels" in found.message
    alone = GuardedMember(pod=pod(98))
    assert "is watched by Sentinels, or is one" in (await provider(port).check_health(alone)).message


@pytest.fixture
async def slow(tmp_path, unused_tcp_port):
    made, link = Servers(unused_tcp_port, tmp_path), SlowLink(pod(0).status.pod_ip)
    await link.start(made.port)
    made.start(0)
    made.start(1, "--replicaof", "127.63.7.77", link.port)
    yield made, link
    made.end()
    await link.end()


async def fill(servers, size):
    """Writes to the master, without waiting for replicas."""
    reader, writer = await asyncio.open_connection(pod(0).status.pod_ip, servers.port)
    writer.write(b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$%d\r\n" % size + b"x" * size + b"\r\n")
    assert await reader.readexactly(5) == b"+OK\r\n"
    writer.transport.abort()


@NEEDS_REDIS
async def test_a_replica_that_lags_takes_nothing_over(slow):
    servers, link = slow
    redis = provider(servers.port, maxLagBytes=100_000)
    await until(lambda: _health(redis), lambda found: getattr(found, "is_healthy", False))
    link.open.clear()
    await fill(servers, 500_000)
    found = await until(lambda: _health(redis), lambda found: not found.is_healthy)
    assert "bytes" in found.message
    assert "behind" in found.message
    await redis.prepare(member(0, of=2))
    assert (await redis.check_progress(member(0, of=2))).progress.value == "stalled"
    link.open.set()
    await until(lambda: redis.check_progress(member(0, of=2)), says("lost"))
    await until(lambda: check_and_prepare(redis, member(0, of=2)), says("ready"))


@NEEDS_REDIS
async def test_failovers_that_do_not_come_about_are_not_tried_without_pause(slow):
    servers, link = slow
    factory = RedisProviderFactory()
    settings = {"port": servers.port, "failoverMilliseconds": 1500}
    one = member(0, of=2)

    def redis():
        return factory.make_provider(settings, Loopback())

    await until(lambda: _health(redis()), lambda found: getattr(found, "is_healthy", False))
    link.open.clear()
    await fill(servers, 500_000)
    await redis().prepare(one)
    with pytest.raises(Unavailable, match="under way"):
        await redis().cancel(one)
    ended = await until(lambda: redis().check_progress(one), lambda found: "did not come about" in found.message)
    assert ended.progress.value == "preparing"
    await redis().prepare(one)
    assert "did not come about" in (await redis().check_progress(one)).message, "it was not tried again at once"
    await redis().cancel(one)
    link.open.set()
    await until(lambda: check_and_prepare(redis(), one), says("ready"))


@NEEDS_REDIS
async def test_a_replica_that_dies_in_the_middle_leaves_the_master(slow):
    servers, link = slow
    redis = provider(servers.port, failoverMilliseconds=3000, timeoutSeconds=1)
    await until(lambda: _health(redis), lambda found: getattr(found, "is_healthy", False))
    link.open.clear()
    await fill(servers, 500_000)
    await redis.prepare(member(0, of=2))
    assert (await redis.check_progress(member(0, of=2))).progress.value == "preparing"
    servers.processes[1].kill()
    found = await until(lambda: redis.check_progress(member(0, of=2)), says("stalled"))
    assert "no replica follows it" in found.message


@NEEDS_REDIS
async def test_two_processes_that_prepare_at_once_make_one_failover(servers):
    one, other = provider(servers.port), provider(servers.port)
    await healthy(one, 0)
    await asyncio.gather(one.prepare(member(0)), other.prepare(member(0)), return_exceptions=True)

    async def ask():
        reports = await asyncio.gather(check_and_prepare(one, member(0)), check_and_prepare(other, member(0)))
        return reports[0]

    await until(ask, says("ready"))
    await healthy(one, 0)


# -- servers that are no Redis -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", Unavailable, "is no Redis"),
        (b"$99999999\r\n", Unavailable, "larger than"),
        (b"*99999999\r\n", Unavailable, "larger than"),
        (b"$x\r\n", Unavailable, "is no number"),
        (b"*1\r\n" * 5, Unavailable, "is no Redis"),
        (b"+" + b"x" * 70_000, Unavailable, "larger than"),
        (b"-ERR no\r\n", LastcallError, "ERR no"),
        (b"", TimedOut, "no answer to INFO"),
        (b"$5\r\nrole:", TimedOut, "no answer to INFO"),
        (None, Unavailable, "has closed the connection"),
        (b"$10\r\nrole:other\r\n$0\r\n\r\n$0\r\n\r\n", LastcallError, "not understood"),
    ],
)
async def test_what_is_no_redis_is_an_error(answer, error, words):
    over = asyncio.Event()

    async def serve(reader, writer):
        await reader.read(100)
        if answer is not None:
            writer.write(answer)
            await over.wait()
        writer.transport.abort()

    server = await asyncio.start_server(serve, pod(0).status.pod_ip, 0)
    try:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(error, match=words):
            await provider(port, timeoutSeconds=1).check_progress(member(0))
    finally:
        over.set()
        server.close()
        await asyncio.sleep(0.05)  # for what closes


# -- what it says ------------------------------------------------------------------------------------------------------


def test_what_a_master_says_of_its_replicas():
    text = "role:master\r\nmaster_failover_state:no-failover\r\nmaster_repl_offset:500\r\nslave0:ip=10.0.0.2,port=6379,state=online,offset=490,lag=1\r\nslave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n"
    found = parse_info(text)
    assert [(one.address, one.is_online, one.offset, one.lag) for one in found.replicas] == [
        ("10.0.0.2", True, 490, 1),
        ("10.0.0.3", False, 0, 0),
    ]
    assert (found.role, found.offset, found.failover) == ("master", 500, "no-failover")


def test_settings_that_it_does_not_take():
    check = RedisProviderFactory().check_settings
    assert check({}) == []
    assert check({"port": 0}) == ["spec.provider.redis.port: 0: must be an integer >= 1"]
    [unknown] = check({"ports": 1})
    assert unknown == "spec.provider.redis.ports: 1: unknown field, did you mean port?"
