"""The provider ``rabbitmq`` at real nodes, in the states in which one must not go, and at nodes that answer as told."""

import pytest
from msgspec.structs import replace
from support.guard import members
from support.guard import rabbitmq_servers as rabbitmq
from support.guard.certificates import FAULTS, SETTINGS, read_refusals
from support.guard.provider_benches import wait_for
from support.guard.scripted_members import ScriptedMembers

from lastcall.adapters.guard import rabbitmq_provider
from lastcall.adapters.guard.rabbitmq_provider import RabbitmqProviderFactory
from lastcall.errors import InvalidInput, LastcallError, TimedOut, Unavailable
from lastcall.ports.guard import ExecResult, GuardedMember, MemberHealth, PreparationProgress

pytestmark = [pytest.mark.timeout(240), pytest.mark.xdist_group("rabbitmq")]
LOST, READY, STALLED = PreparationProgress.LOST, PreparationProgress.READY, PreparationProgress.STALLED
PREPARING = PreparationProgress.PREPARING
CHECKS = (*rabbitmq_provider.CRITICAL, rabbitmq_provider.ALARMS)
HEALTHY = MemberHealth(is_healthy=True)
LOGIN = {"username": rabbitmq.USER, "passwordSecret": {"name": "auth"}}


class Bench:
    """The servers, and providers as one process makes them."""

    def __init__(self, servers):
        self.servers, self.factory = servers, RabbitmqProviderFactory()
        servers.make_whole()

    def provider(self, password=rabbitmq.PASSWORD, **settings):
        settings = {"port": self.servers.port, "timeoutSeconds": 5, **LOGIN, **settings}
        return self.factory.make_provider(settings, self.servers.access(auth=password, **self.servers.tls.secrets))

    def find_leader(self, number):
        async def ask():
            return self.servers.leader(number)

        return ask

    async def check(self, number, **settings):
        report = await self.provider(**settings).check_progress(one(number))
        return report.progress, report.message


@pytest.fixture
def bench(rabbitmq_servers):
    return Bench(rabbitmq_servers)


def one(number, of=3):
    return members.member(number, of, net=rabbitmq.NET)


def name(number):
    return members.pod(number).metadata.name


async def test_the_leaders_of_queues_leave_and_what_was_confirmed_is_there(bench):
    """A message is published before, meanwhile and after; then the node goes, and comes back."""
    leader, others = bench.servers.leader(0), [number for number in range(3) if number != bench.servers.leader(0)]
    provider = bench.provider()
    assert await provider.check_health(one(leader)) == HEALTHY
    assert await bench.check(leader) == (LOST, "it is not in maintenance mode")
    assert bench.servers.publish(leader, "before")
    await provider.prepare(one(leader))
    await wait_for(lambda: bench.check(leader), lambda found: found == (READY, "it is in maintenance mode"))
    assert not bench.servers.answers(leader), "it listens to nobody"
    await wait_for(bench.find_leader(others[0]), lambda found: found in others)
    assert bench.servers.publish(others[0], "meanwhile")
    assert f"shop/{name(leader)}: " in (await provider.check_health(one(others[0]))).message
    progress, message = await bench.check(others[0])
    assert progress is STALLED
    assert f"shop/{name(leader)}" in message
    await provider.prepare(one(others[0]))
    assert bench.servers.answers(others[0]), "one is in maintenance mode already"
    bench.servers.stop(leader)
    health = await provider.check_health(members.gone(leader, net=rabbitmq.NET))
    assert (
        f"{rabbitmq.node(leader)} is no pod of the application; {rabbitmq.address(leader)} does not run"
        in health.message
    )
    bench.servers.start(leader)
    replaced = replace_pod(leader)
    await wait_for(lambda: provider.check_health(replaced), lambda found: found == HEALTHY)
    await provider.release(replaced)
    assert bench.servers.publish(leader, "after")
    assert bench.servers.take(leader) == ["before", "meanwhile", "after"]


def replace_pod(number):
    gone, pod = members.gone(number, net=rabbitmq.NET), one(number).pod
    new = replace(pod, metadata=replace(pod.metadata, uid="uid-new"))
    return GuardedMember(pod=gone.pod, others=(*gone.others, new))


async def test_another_process_makes_sure_that_a_command_has_ended(bench):
    await bench.provider().prepare(one(0))
    bench.factory = RabbitmqProviderFactory()
    assert await bench.check(0) == (LOST, "it is not in maintenance mode")
    await bench.provider().prepare(one(0))
    await wait_for(lambda: bench.check(0), lambda found: found == (READY, "it is in maintenance mode"))
    bench.factory = RabbitmqProviderFactory()
    await bench.provider().cancel(one(0))
    assert bench.servers.answers(0)


async def test_with_one_node_frozen_nothing_is_begun_and_no_other_may_go(bench):
    bench.servers.freeze(2)
    silent = f"pod shop/{name(2)}: GET /api/whoami: no answer in 2 s"
    health = await bench.provider(timeoutSeconds=2).check_health(one(0))
    assert (health.is_healthy, silent in health.message) == (False, True)
    await bench.provider(timeoutSeconds=2).prepare(one(0))
    progress, message = await bench.check(0, timeoutSeconds=2)
    assert (progress, silent in message) == (STALLED, True)
    assert bench.servers.answers(0), "it is not in maintenance mode"


async def test_a_queue_with_a_single_replica_holds_its_node(bench):
    bench.servers.declare(1, "single", replicas=1)
    try:
        health = await bench.provider().check_health(one(0))
        assert f"{name(1)}: There are quorum queues that would lose their quorum" in health.message
        assert "single" in health.message
        await bench.provider().prepare(one(1))
        progress, message = await bench.check(1)
        assert progress is STALLED
        assert "would lose their quorum" in message
        assert bench.servers.answers(1), "it is not in maintenance mode"
    finally:
        bench.servers.delete(1, "single")


async def test_a_password_that_is_refused_is_named_and_not_shown(bench):
    with pytest.raises(LastcallError, match="the login of guard is refused") as caught:
        await bench.provider(password="wr0ng").check_health(one(0))  # noqa: S106 - it is none
    assert "wr0ng" not in str(caught.value)


async def test_over_tls_what_is_not_the_applications_holds_the_pod(bench):
    over_tls = {"scheme": "https", "port": bench.servers.tls_port, **SETTINGS}
    assert await bench.provider(**over_tls).check_health(one(0)) == HEALTHY
    assert await bench.check(0, **over_tls) == (LOST, "it is not in maintenance mode")
    for changes, what in FAULTS.values():
        said = await read_refusals(bench.provider(**over_tls | changes), one(0))
        assert all(what.search(text) for text in said), said
    for said in await read_refusals(bench.provider(**over_tls | {"clientCertificateSecret": None}), one(0)):
        assert "certificate" in said
    assert bench.servers.answers(0), "it is not in maintenance mode"


# -- nodes that answer as they are told --------------------------------------------------------------------------------


class ScriptedNodes(ScriptedMembers):
    """``results`` are those of the commands, or an exception; the last one is that of all others."""

    def __init__(self, answers, *results):
        super().__init__(answers)
        self.results, self.commands = list(results) or [ExecResult(code=0)], []
        self.revived = None
        """Its answers after it was revived."""

    async def execute(self, pod, container, command):
        self.commands.append((pod.metadata.name, container, *command))
        found = self.results.pop(0) if len(self.results) > 1 else self.results[0]
        if isinstance(found, Exception):
            raise found
        if command[-1] == "revive" and self.revived:
            self.answers = self.revived.answers
        return found


def scripted(*changes, results=(), checks=None, strange=()):
    """Three nodes; a change is a number and fields of its entry in the list of nodes, or None for one that is silent."""
    changed = dict(changes)
    listed = [{"name": f"rabbit@redis-{number}.rabbit.shop.svc", "running": True} for number in range(3)]
    listed = [entry | (changed.get(number, {}) or {}) for number, entry in enumerate(listed)]
    listed += [{"name": other, "running": True} for other in strange]
    answers = {}
    for number in range(3):
        told = {"GET " + rabbitmq_provider.NODES: (200, listed), "GET /api/whoami": (200, {"name": "guard"})}
        told |= {f"GET /api/health/checks/{check}": (200, {"status": "ok"}) for check in CHECKS}
        told |= {f"GET /api/health/checks/{check}": answer for check, answer in (checks or {}).get(number, {}).items()}
        answers[name(number)] = {} if changed.get(number, {}) is None else told
    return ScriptedNodes(answers, *results)


def scripted_provider(access, factory=None, **settings):
    return (factory or RabbitmqProviderFactory()).make_provider({**LOGIN, **settings}, access)


QUEUES = [{"readable_name": f"queue '{letter}' in vhost '/'"} for letter in "abcd"]
FAILED = (503, {"status": "failed", "reason": "no quorum", "queues": QUEUES})
NAMED = "no quorum: queue 'a' in vhost '/', queue 'b' in vhost '/', queue 'c' in vhost '/', 1 more"


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (scripted(), ""),
        (scripted((2, {"running": False})), "redis-2 does not run"),
        (scripted((2, None)), "shop/redis-2: connection refused"),
        (scripted(checks={2: {"local-alarms": (503, {"status": "failed", "reason": "disk"})}}), "redis-2: disk"),
        (scripted(checks={0: {"node-is-quorum-critical": FAILED}}), f"redis-0: {NAMED}"),
        (scripted(checks={1: {"node-is-mirror-sync-critical": FAILED}}), f"redis-1: {NAMED}"),
        (scripted(checks={1: {"node-is-mirror-sync-critical": (404, "Not Found")}}), ""),
        (
            scripted(checks={1: {"node-is-quorum-critical": (200, "x" * 70_000)}}),
            "redis-1: node-is-quorum-critical: many queues",
        ),
        (scripted(strange=["rabbit@other"]), "rabbit@other is no pod of the application"),
        (
            scripted((2, {"name": "rabbit@redis-2.rabbit.elsewhere.svc"})),
            "rabbit@redis-2.rabbit.elsewhere.svc is no pod of the application; redis-2 is no node of the RabbitMQ cluster",
        ),
    ],
)
async def test_what_makes_an_application_unhealthy(access, message):
    found = await scripted_provider(access).check_health(one(0))
    assert (found.is_healthy, found.message) == (not message, message)
    assert access.commands == []


async def test_a_node_alone_may_not_go():
    access = scripted()
    for told in access.answers.values():
        told["GET " + rabbitmq_provider.NODES] = (200, [{"name": "rabbit@redis-0", "running": True}])
    found = await scripted_provider(access).check_health(one(0, of=1))
    assert found.message == "there is no other node"


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (scripted((2, {"running": False})), "redis-2 does not run"),
        (scripted((2, None)), "shop/redis-2: connection refused"),
        (scripted((0, {"running": False})), "redis-0 does not run"),
        (scripted((0, {"name": "rabbit@elsewhere"})), "it is no node of the RabbitMQ cluster"),
        (scripted(checks={0: {"node-is-quorum-critical": FAILED}}), NAMED),
    ],
)
async def test_who_must_not_go_is_not_put_into_maintenance_mode(access, message):
    provider = scripted_provider(access)
    await provider.prepare(one(0))
    assert access.commands == []
    report = await provider.check_progress(one(0))
    assert (report.progress, report.message) == (STALLED, message)


async def test_the_command_runs_in_the_container_that_is_named_and_once():
    access = scripted()
    provider = scripted_provider(access, container="broker")
    await provider.prepare(one(0))
    assert access.commands == [("redis-0", "broker", "rabbitmq-upgrade", "drain")]
    access.answers = scripted((0, None)).answers
    await provider.prepare(one(0))
    assert (await provider.check_progress(one(0))).progress is READY
    access.revived = scripted()
    await provider.cancel(one(0))
    assert access.commands[1:] == [("redis-0", "broker", "rabbitmq-upgrade", "revive")]


async def test_a_command_that_fails_is_told_and_run_again():
    factory, access = (
        RabbitmqProviderFactory(),
        scripted(results=[ExecResult(code=69, stderr="Error:\nnoproc"), ExecResult(code=0)]),
    )
    provider = scripted_provider(access, factory)
    with pytest.raises(LastcallError, match="rabbitmq-upgrade drain: exit code 69: Error: noproc"):
        await provider.prepare(one(0))
    access.answers = scripted((0, None)).answers
    assert (await provider.check_progress(one(0))).progress is LOST, "it may not have come to its end"
    await provider.prepare(one(0))
    assert (await provider.check_progress(one(0))).progress is READY


async def test_a_command_that_takes_long_is_under_way(monkeypatch):
    access = scripted(results=[TimeoutError()])
    provider = scripted_provider(access)
    await provider.prepare(one(0))
    access.answers = scripted((0, None)).answers
    report = await provider.check_progress(one(0))
    assert (report.progress, report.message) == (PREPARING, "it enters maintenance mode")
    with pytest.raises(TimedOut, match="rabbitmq-upgrade revive has not ended in 20 s"):
        await provider.cancel(one(0))


async def test_a_queue_whose_replica_does_not_come_back_is_told_and_the_command_run_again(monkeypatch):
    """Its leader had not moved yet when the node was revived: RabbitMQ then restarts no replica."""
    monkeypatch.setattr(rabbitmq_provider, "LOOK_SECONDS", 0.0)
    access = scripted()
    provider = scripted_provider(access)
    await provider.prepare(one(0))
    access.answers = scripted(checks={1: {"node-is-quorum-critical": FAILED}}).answers
    for count in (2, 4):
        with pytest.raises(Unavailable, match="queues lack replicas after maintenance mode: no quorum: queue 'a'"):
            await provider.cancel(one(0))
        assert [verb for *_, verb in access.commands] == ["drain"] + ["revive"] * count
    access.answers = scripted().answers
    await provider.cancel(one(0))
    assert len(access.commands) == 6
    await provider.cancel(one(0))
    assert len(access.commands) == 6, "there is nothing to undo any more"


async def test_a_node_without_its_maintenance_mode_is_told():
    """It was restarted in its container: it has leaders again."""
    access = scripted((0, None))
    provider = scripted_provider(access)
    await provider.prepare(one(0))
    assert (await provider.check_progress(one(0))).progress is READY
    access.answers = scripted().answers
    assert (await provider.check_progress(one(0))).progress is LOST


async def test_the_others_are_asked_first_and_the_node_itself_if_they_are_silent():
    access = scripted((1, None), (2, None))
    report = await scripted_provider(access).check_progress(one(0))
    assert (report.progress, report.message) == (
        STALLED,
        "; ".join(f"shop/redis-{one}: connection refused" for one in (1, 2)),
    )
    access = scripted((0, None), (1, None))
    access.revived = scripted()
    await scripted_provider(access).cancel(one(0))
    assert access.asked[0] == ("redis-2", f"GET {rabbitmq_provider.NODES}")
    assert access.commands == [("redis-0", "", "rabbitmq-upgrade", "revive")]
    with pytest.raises(Unavailable, match="redis-1: connection refused; .*redis-0: connection refused"):
        await scripted_provider(scripted((0, None), (1, None), (2, None))).cancel(one(0))


@pytest.mark.parametrize("answer", [(200, {"error": "x"}), (200, [1]), (404, "no plugin"), (500, "x")])
async def test_who_is_not_rabbitmq_is_no_proof(answer):
    access = scripted()
    for told in access.answers.values():
        told["GET " + rabbitmq_provider.NODES] = answer
    with pytest.raises(LastcallError, match="/api/nodes"):
        await scripted_provider(access).check_progress(one(0))


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({}, "spec.provider.rabbitmq.username, passwordSecret: must be given"),
        ({**LOGIN, "port": 0}, "spec.provider.rabbitmq.port: 0: "),
        ({**LOGIN, "container": "A b"}, 'spec.provider.rabbitmq.container: "A b": '),
        ({**LOGIN, "caSecret": {"name": "ca"}}, 'spec.provider.rabbitmq.caSecret: "ca": needs scheme https'),
        ({**LOGIN, "drain": True}, "spec.provider.rabbitmq.drain: true: unknown field"),
    ],
)
def test_settings_that_are_wrong_are_named(settings, violation):
    found = RabbitmqProviderFactory().check_settings(settings)
    assert any(one.startswith(violation) for one in found), found
    with pytest.raises(InvalidInput):
        RabbitmqProviderFactory().make_provider(settings, members.Loopback())
