"""The provider ``patroni`` at real members, in the states in which one must not go."""

import os
import signal
from datetime import UTC, datetime, timedelta

import pytest
from support.guard import members
from support.guard.certificates import EXPIRED, FAULTS, SETTINGS, TlsFiles, read_refusals
from support.guard.patroni_servers import NET, PASSWORD, USER, PatroniServers
from support.guard.provider_benches import wait_for
from support.guard.scripted_members import ScriptedMembers

from lastcall.adapters.guard.patroni_provider import PatroniProviderFactory
from lastcall.errors import InvalidInput, LastcallError, TimedOut
from lastcall.ports.guard import GuardedMember, MemberHealth, PreparationProgress, PreparationReport

pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("patroni")]
LOST, READY, STALLED = PreparationProgress.LOST, PreparationProgress.READY, PreparationProgress.STALLED
PREPARING = PreparationProgress.PREPARING
HEALTHY = MemberHealth(is_healthy=True)


class Bench:
    """The servers; ``leader`` is the number of the member that leads at the beginning, ``first`` and ``second`` follow."""

    def __init__(self, servers):
        self.servers, self.leader = servers, servers.make_whole()
        self.first, self.second = (number for number in range(3) if number != self.leader)

    def provider(self, password=PASSWORD, secrets=None, **settings):
        login = {"username": USER, "passwordSecret": {"name": "auth"}}
        settings = {"port": self.servers.port, "timeoutSeconds": 1, **login, **settings}
        return PatroniProviderFactory().make_provider(settings, members.Loopback(auth=password, **(secrets or {})))

    async def check(self, number, **settings):
        report = await self.provider(**settings).check_progress(member(number))
        return report.progress, report.message

    async def health(self, **settings):
        return (await self.provider(**settings).check_health(member(self.leader))).message


@pytest.fixture
def bench(patroni_servers):
    return Bench(patroni_servers)


@pytest.fixture
def own_bench(patroni_servers):
    """Servers of the test's own: a member that has had TLS does not reach the others by HTTP again.

    Where there can be none, ``patroni_servers`` skips the test.
    """
    servers = PatroniServers()
    try:
        yield Bench(servers)
    finally:
        servers.end()


def member(number):
    return members.member(number, net=NET)


def name(number):
    return members.pod(number).metadata.name


async def test_a_replica_may_go_at_once_and_has_nothing_to_hand_over(bench):
    assert await bench.provider().check_health(member(bench.leader)) == HEALTHY
    assert await bench.check(bench.leader) == (LOST, "it is the leader")
    assert await bench.check(bench.first) == (READY, f"{name(bench.leader)} is the leader")
    await bench.provider().prepare(member(bench.first))
    assert await bench.check(bench.leader) == (LOST, "it is the leader")


async def test_in_synchronous_mode_the_synchronous_standby_takes_over(bench):
    bench.servers.configure(synchronous_mode=True)
    provider, whole = bench.provider(), member(bench.leader)

    async def find_standby():
        listed = bench.servers.call(0, "GET", "/cluster")[1]["members"]
        return [one["name"] for one in listed if one["role"] == "sync_standby"]

    [standby] = await wait_for(find_standby, lambda found: len(found) == 1)
    await wait_for(lambda: provider.check_health(whole), lambda found: found == HEALTHY)
    await provider.prepare(whole)
    report = await wait_for(lambda: provider.check_progress(whole), is_over)
    assert (report.progress, report.message) == (READY, f"{standby} is the leader")


def is_over(found):
    """What is on the way is no failure: a process that has begun a switchover knows it."""
    assert not isinstance(found, PreparationReport) or found.progress in (PREPARING, READY), found
    return getattr(found, "progress", None) is READY


async def test_with_a_replica_frozen_nothing_is_begun_and_no_other_may_go(bench):
    bench.servers.freeze(bench.second)
    assert f"{name(bench.second)}: " in await bench.health()
    progress, message = await bench.check(bench.first)
    assert progress is STALLED
    assert "no other replica would follow it closely" in message
    assert "no answer in 1 s" in message


async def test_a_leader_whose_replicas_are_frozen_keeps_its_leadership(bench):
    bench.servers.freeze(bench.first, bench.second)
    await bench.provider().prepare(member(bench.leader))
    progress, message = await bench.check(bench.leader)
    assert progress is STALLED
    assert "no other member can take over" in message
    assert bench.servers.call(bench.leader, "GET", "/primary")[0] == 200


async def test_a_frozen_leader_is_not_passed_over(bench):
    bench.servers.freeze(bench.leader)
    assert "no answer" in await bench.health()
    progress, message = await bench.check(bench.first)
    assert progress is STALLED
    assert "its leader does not answer" in message
    with pytest.raises(TimedOut):
        await bench.check(bench.leader)


async def test_replicas_whose_replay_is_paused_take_nothing_over(bench):
    for number in (bench.first, bench.second):
        bench.servers.execute(number, "SELECT pg_wal_replay_pause()")
    try:
        fault = f"{name(bench.first)} has its replay paused"
        await wait_for(bench.health, lambda found: fault in str(found))
        await bench.provider().prepare(member(bench.leader))
        await wait_for(
            lambda: bench.check(bench.leader),
            lambda found: isinstance(found, tuple) and found[0] is STALLED and fault in found[1],
        )
        await wait_for(lambda: bench.check(bench.first), lambda found: isinstance(found, tuple) and found[0] is STALLED)
    finally:
        for number in (bench.first, bench.second):
            bench.servers.execute(number, "SELECT pg_wal_replay_resume()")


async def test_over_tls_what_is_not_the_applications_holds_the_pod(own_bench):
    """The REST API asks for a client's certificate where something is changed."""
    bench = own_bench
    files = TlsFiles(bench.servers.directory / "tls")
    whole = member(bench.leader)

    def ask(**settings):
        return bench.provider(secrets=files.secrets, **{"scheme": "https", **SETTINGS, **settings})

    bench.servers.use_tls(files)
    bench.servers.wait_for_https()
    await wait_for(lambda: ask().check_health(whole), lambda found: found == HEALTHY)
    for settings, words in FAULTS.values():
        assert all(words.search(one) for one in await read_refusals(ask(**settings), whole))
    with pytest.raises(LastcallError, match="is refused: 403"):
        await ask(clientCertificateSecret=None).prepare(whole)
    assert bench.servers.leader() == bench.leader
    provider = ask()
    await provider.prepare(whole)
    await wait_for(lambda: provider.check_progress(whole), is_over)
    files.write(expired=True)
    bench.servers.use_tls(files)
    await wait_for(
        lambda: read_refusals(ask(), whole),
        lambda found: isinstance(found, list) and all(EXPIRED in one for one in found),
    )


async def test_a_cluster_that_is_paused_is_left_alone(bench):
    bench.servers.configure(pause=True)
    assert await bench.health() == "the Patroni cluster is paused"
    for number in (bench.leader, bench.first):
        await bench.provider().prepare(member(number))
        assert await bench.check(number) == (STALLED, "the Patroni cluster is paused")


async def test_a_switchover_that_somebody_has_scheduled_stays_scheduled(bench):
    at = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    wanted = {"leader": name(bench.leader), "scheduled_at": at}
    assert bench.servers.call(bench.leader, "POST", "/switchover", wanted)[0] == 202
    try:
        assert "a switchover is scheduled at " in await bench.health()
        await bench.provider().prepare(member(bench.leader))
        await bench.provider().cancel(member(bench.leader))
        assert (await bench.check(bench.leader))[0] is STALLED
        assert "scheduled_switchover" in bench.servers.call(0, "GET", "/cluster")[1]
    finally:
        assert bench.servers.call(0, "DELETE", "/switchover")[0] == 200


async def test_while_nobody_knows_who_leads_nobody_may_go(bench):
    etcd = bench.servers.processes["etcd"].pid
    os.kill(etcd, signal.SIGSTOP)
    try:
        for number in (bench.leader, bench.first):  # members answer from a cache until the leader steps down
            await wait_for(
                lambda one=number: bench.check(one), lambda found: isinstance(found, Exception) or found[0] is STALLED
            )
    finally:
        os.kill(etcd, signal.SIGCONT)


async def test_a_password_that_is_refused_is_named_and_not_shown(bench):
    provider = bench.provider(password="wr0ng")  # noqa: S106 - it is none
    with pytest.raises(LastcallError, match="the password of Secret auth is refused") as caught:
        await provider.prepare(member(bench.leader))
    assert "wr0ng" not in str(caught.value)
    assert (await provider.check_progress(member(bench.leader))).progress is LOST, "nothing was begun"


async def test_members_that_are_no_pods_of_the_application_are_missed(bench):
    whole = member(bench.leader)
    alone = GuardedMember(pod=whole.pod, others=whole.others[:1])
    health = await bench.provider().check_health(alone)
    assert health.message == f"{name(bench.second)}: no pods of the application"
    others = tuple(one for one in member(bench.first).others if one.metadata.name != name(bench.leader))
    report = await bench.provider().check_progress(GuardedMember(pod=member(bench.first).pod, others=others))
    assert report.progress is STALLED
    assert "is no other member of the application" in report.message


# -- members that answer as they are told ------------------------------------------------------------------------------


def scripted(*changes, cluster=None, config=None, switchover=(200, "Successfully switched over"), of=3):
    """Three members of which the first leads. A change is a number, and fields of /patroni (in lower case), of the list of
    members (``listed``), or None for one that is silent.
    """
    changed = dict(changes)
    listed, answers = [], {}
    for number in range(of):
        told = {"state": "running", "role": "replica", "timeline": 3, "tags": {}}
        told["xlog"] = {"received_location": 9_000_000, "replayed_location": 9_000_000, "paused": False}
        one = {"name": f"pg-{number}", "role": "replica", "state": "streaming"}
        one |= {"host": members.pod(number).status.pod_ip, "lag": 0}
        if number == 0:
            one |= {"role": "leader", "state": "running"}
            senders = [{"application_name": f"pg-{other}", "state": "streaming"} for other in range(1, of)]
            told |= {"role": "primary", "xlog": {"location": 9_000_000}, "replication": senders}
        change = changed.get(number, {})
        one |= (change or {}).get("listed", {})
        told |= {key: value for key, value in (change or {}).items() if key != "listed"}
        listed.append(one)
        answers[name(number)] = {} if change is None else {"GET /patroni": (200, told)}
    for known in filter(None, answers.values()):
        known["GET /cluster"] = (200, {"members": listed, **(cluster or {})})
        known["GET /config"] = (200, config or {})
        known["POST /switchover"] = switchover
    return ScriptedMembers(answers)


SYNCHRONOUS = {"synchronous_mode": True}
STANDBY = (1, {"listed": {"role": "sync_standby"}})


def replayed(position, **more):
    return {"xlog": {"received_location": 9_000_000, "replayed_location": position, **more}}


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (scripted(), ""),
        (scripted(of=2), ""),
        (scripted((2, replayed(9_000_000 - 2**20))), ""),
        (scripted((2, replayed(9_000_000 - 2**20 - 1))), "redis-2 is 1048577 bytes behind"),
        (scripted((2, {"timeline": 2})), "redis-2 is on timeline 2, and the leader on 3"),
        (scripted((2, {"state": "start failed"})), "redis-2 is start failed"),
        (scripted((2, {"listed": {"state": "stopped"}})), "redis-2 is stopped"),
        (scripted((2, {"role": "master"})), "redis-2 runs as primary and is not the leader"),
        (
            scripted((0, {"replication": [{"application_name": "pg-1", "state": "streaming"}]})),
            "redis-2 does not stream from another member",
        ),
        (
            scripted((0, {"role": "replica"})),
            "redis-0 is the leader, and no primary that runs",
        ),
        (
            scripted((0, {"cluster_unlocked": True})),
            "redis-0 is the leader, and no primary that runs",
        ),
        (scripted((1, {"cluster_unlocked": True})), "redis-1 knows of no leader in its DCS"),
        (scripted((0, {"listed": {"role": "replica"}})), "no member is the leader"),
        (scripted(STANDBY, config=SYNCHRONOUS), ""),
        (scripted(config=SYNCHRONOUS), "there is no synchronous standby"),
        (
            scripted(STANDBY, config={**SYNCHRONOUS, "synchronous_mode_strict": True}, of=2),
            "without one of two members writes would stop: synchronous_mode_strict",
        ),
        (scripted(of=1), "there is no other member"),
        (
            scripted((2, {"listed": {"name": "x", "host": "10.0.0.9"}})),
            "x: no pods of the application; redis-2 is no member",
        ),
    ],
)
async def test_what_makes_an_application_unhealthy(access, message):
    found = (
        await PatroniProviderFactory().make_provider({}, access).check_health(members.member(0, len(access.answers)))
    )
    assert found.message.startswith(message)
    assert found.is_healthy == (not message)


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (scripted((1, replayed(0)), (2, {"tags": {"nofailover": True}})), "redis-1 is 9000000 bytes behind"),
        (scripted((1, None), (2, {"watchdog_failed": True})), "connection refused"),
        (scripted((1, {"tags": {"nofailover": True}}), config=SYNCHRONOUS), "no other member can take over"),
        (scripted((0, {"listed": {"role": "replica"}})), "no member is the leader"),
    ],
    ids=["far behind", "not electable", "no synchronous standby", "no leader"],
)
async def test_who_cannot_hand_over_keeps_its_leadership(access, message):
    provider = PatroniProviderFactory().make_provider({}, access)
    await provider.prepare(members.member(0))
    assert all(title.startswith("GET ") for _, title in access.asked)
    report = await provider.check_progress(members.member(0))
    assert report.progress is STALLED
    assert message in report.message


@pytest.mark.parametrize("answer", [(412, "switchover is not possible: no good"), (503, "Switchover failed")])
async def test_what_patroni_refuses_is_told_and_not_repeated_at_once(answer):
    access = scripted(switchover=answer)
    provider = PatroniProviderFactory().make_provider({}, access)
    await provider.prepare(members.member(0))
    report = await provider.check_progress(members.member(0))
    assert report.progress is STALLED
    assert report.message == f"it is the leader, and Patroni says: {answer[0]} {answer[1]}"


async def test_a_switchover_that_is_under_way_is_not_begun_again_and_what_it_leads_through_is_progress():
    access = scripted()
    provider = PatroniProviderFactory().make_provider({}, access)
    for _ in range(2):
        await provider.prepare(members.member(0))
    assert [title for _, title in access.asked].count("POST /switchover") == 1
    assert (await provider.check_progress(members.member(0))).progress is PREPARING
    access.answers = scripted((0, {"listed": {"role": "replica"}, "state": "stopping"})).answers
    assert (await provider.check_progress(members.member(0))).progress is PREPARING
    await provider.cancel(members.member(0))
    assert (await provider.check_progress(members.member(0))).progress is STALLED


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (scripted((0, {"role": "replica"})), "redis-0 is the leader, and no primary that runs yet"),
        (scripted((0, {"cluster_unlocked": True})), "redis-0 is the leader, and no primary that runs yet"),
        (scripted((0, None)), "its leader does not answer; redis-0: "),
        (scripted((1, {"role": "master"})), "redis-0 is the leader; redis-1 runs as primary and is not the leader"),
        (scripted((1, replayed(0))), "redis-0 is the leader; redis-1 is 9000000 bytes behind"),
        (scripted((2, replayed(0))), "redis-0 is the leader, and no other replica would follow it closely"),
        (scripted((2, None)), "redis-0 is the leader, and no other replica would follow it closely; redis-2: "),
        (scripted((1, {"listed": {"name": "x", "host": "10.0.0.9"}})), "it is no member of the Patroni cluster"),
    ],
)
async def test_a_replica_stays_while_the_others_cannot_do_without_it(access, message):
    report = await PatroniProviderFactory().make_provider({}, access).check_progress(members.member(1))
    assert report.progress is STALLED
    assert report.message.startswith(message)


async def test_the_last_replica_stays_where_writes_wait_for_it():
    for config, progress in ((SYNCHRONOUS, READY), ({**SYNCHRONOUS, "synchronous_mode_strict": True}, STALLED)):
        access = scripted(STANDBY, config=config, of=2)
        report = await PatroniProviderFactory().make_provider({}, access).check_progress(members.member(1, 2))
        assert report.progress is progress


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({"port": 0}, "spec.provider.patroni.port: 0: "),
        ({"caSecret": {"name": "ca"}}, 'spec.provider.patroni.caSecret: "ca": needs scheme https'),
        ({"passwordSecret": {"name": "auth"}}, 'spec.provider.patroni.passwordSecret: "auth": needs username'),
        ({"username": "admin"}, 'spec.provider.patroni.username: "admin": needs passwordSecret'),
        ({"username": "a:b"}, "spec.provider.patroni.username: "),
        ({"maxLag": 1}, "spec.provider.patroni.maxLag: 1: unknown field"),
    ],
)
def test_settings_that_are_wrong_are_named(settings, violation):
    assert any(one.startswith(violation) for one in PatroniProviderFactory().check_settings(settings))
    with pytest.raises(InvalidInput):
        PatroniProviderFactory().make_provider(settings, members.Loopback())
