"""The provider redis: with real servers on loopback, and with servers that are none."""

import asyncio
import os
import signal

import pytest
from support.guard.members import Loopback, member, pod
from support.guard.redis_servers import NEEDS_REDIS, Servers

from lastcall.adapters.guard.redis_provider import RedisProviderFactory
from lastcall.adapters.guard.redis_state import parse_info
from lastcall.errors import LastcallError, TimedOut, Unavailable


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
    redis = provider(servers.port)
    await healthy(redis, 0)
    assert (await redis.check_progress(member(0))).progress.value == "lost", "nothing is prepared yet"
    await redis.prepare(member(0))
    await redis.prepare(member(0))
    found = await until(lambda: redis.check_progress(member(0)), says("ready", "lost"))
    if found.progress.value == "lost":
        assert "has it as master still" in found.message
        await redis.prepare(member(0))
    await until(lambda: redis.check_progress(member(0)), says("ready"))
    await healthy(redis, 0)
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
