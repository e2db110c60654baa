"""The provider ``etcd`` at real servers, in the states in which a member must not go."""

import contextlib
import json
import os
import signal
import socket

import pytest
from support.guard import members
from support.guard.certificates import EXPIRED, FAULTS, SETTINGS, TlsFiles, read_refusals
from support.guard.etcd_servers import NEEDS_ETCD, NET, EtcdServers
from support.guard.provider_benches import wait_for

from lastcall.adapters.guard.etcd_provider import EtcdProviderFactory
from lastcall.errors import InvalidInput, LastcallError, TimedOut
from lastcall.ports.guard import GuardedMember, MemberHealth, PreparationProgress

pytestmark = [NEEDS_ETCD, pytest.mark.timeout(120), pytest.mark.xdist_group("etcd")]
LOST, READY, STALLED = PreparationProgress.LOST, PreparationProgress.READY, PreparationProgress.STALLED


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    servers = EtcdServers(free_port, tmp_path_factory.mktemp("etcd"))
    yield servers
    servers.end()


@pytest.fixture
def etcd(running):
    """All three answer, and the first leads."""
    for process in running.processes.values():
        os.kill(process.pid, signal.SIGCONT)
    running.move_leader(0)
    return running


def freeze(etcd, *numbers):
    for number in numbers:
        os.kill(etcd.processes[number].pid, signal.SIGSTOP)


def provider(etcd):
    return EtcdProviderFactory().make_provider({"port": etcd.port, "timeoutSeconds": 1}, members.Loopback())


def member(number):
    return members.member(number, net=NET)


async def test_a_follower_may_go_at_once_and_a_leader_may_not(etcd):
    await wait_for(lambda: provider(etcd).check_health(member(0)), lambda found: found == MemberHealth(is_healthy=True))
    assert (await provider(etcd).check_progress(member(1))).progress is READY
    report = await provider(etcd).check_progress(member(0))
    assert (report.progress, report.message) == (LOST, "it is the leader")
    await provider(etcd).prepare(member(1))
    assert etcd.leader() == 0, "a follower has nothing to hand over"
    await provider(etcd).prepare(member(0))
    assert etcd.wait_for_leader() != 0
    report = await provider(etcd).check_progress(member(0))
    assert report.progress is READY
    assert report.message.endswith("is the leader")


async def test_with_one_member_frozen_nothing_is_begun_and_no_other_may_go(etcd):
    freeze(etcd, 2)
    health = await provider(etcd).check_health(member(0))
    assert not health.is_healthy
    assert "redis-2: " in health.message
    assert "no answer in 1 s" in health.message
    report = await provider(etcd).check_progress(member(1))
    assert report.progress is STALLED
    assert "1 of 3 members would remain, and 2 are needed" in report.message
    assert "redis-2" in report.message


async def test_a_leader_whose_followers_are_frozen_keeps_its_leadership(etcd):
    freeze(etcd, 1, 2)
    with contextlib.suppress(TimedOut):  # the server waits for the successor
        await provider(etcd).prepare(member(0))
    report = await provider(etcd).check_progress(member(0))
    assert report.progress is STALLED


async def test_a_quorum_that_is_lost_is_told(etcd):
    freeze(etcd, 0, 2)
    report = await wait_for(
        lambda: provider(etcd).check_progress(member(1)),
        lambda found: "no leader" in getattr(found, "message", ""),
    )
    assert report.progress is STALLED


async def test_members_that_are_no_pods_of_the_application_are_missed(etcd):
    alone = GuardedMember(pod=member(0).pod, others=member(0).others[:1])
    health = await provider(etcd).check_health(alone)
    assert health.message == "1 voting members of 3 are no pods of the application"
    lonely = GuardedMember(pod=member(1).pod, others=member(1).others[1:])
    report = await provider(etcd).check_progress(lonely)
    assert report.progress is STALLED
    assert "is no other member of the application" in report.message


# -- TLS ---------------------------------------------------------------------------------------------------------------


async def test_over_tls_what_is_not_the_applications_holds_the_pod(tmp_path):
    """With a client's certificate, as Kubernetes' own etcd asks for one."""
    files = TlsFiles(tmp_path / "tls")
    etcd = EtcdServers(free_port, tmp_path / "data", tls=files)

    def ask(**settings):
        settings = {"port": etcd.port, "scheme": "https", **SETTINGS, **settings}
        return EtcdProviderFactory().make_provider(settings, members.Loopback(**files.secrets))

    try:
        await wait_for(lambda: ask().check_health(member(0)), lambda found: found == MemberHealth(is_healthy=True))
        for settings, words in FAULTS.values():
            assert all(words.search(one) for one in await read_refusals(ask(**settings), member(0)))
        for said in await read_refusals(ask(clientCertificateSecret=None), member(0)):
            assert "it may ask for another client certificate" in said
        assert etcd.leader() == 0
        await ask().prepare(member(0))
        assert etcd.wait_for_leader() != 0
        await wait_for(lambda: ask().check_progress(member(0)), lambda found: getattr(found, "progress", None) is READY)
        files.write(expired=True)  # etcd reads its certificate for each connection
        assert all(EXPIRED in said for said in await read_refusals(ask(), member(0)))
    finally:
        etcd.end()


class Scripted:
    """``HttpMember``-like access to servers that answer as they are told."""

    def __init__(self, **states):
        self.states = states

    async def read_secret(self, name, key):
        return "s3cret"

    async def connect(self, pod, port, **tls):
        return Answers(self.states[pod.metadata.name])


class Answers:
    def __init__(self, state):
        self._state, self._asked, self._sent = state, b"", False

    async def write(self, data):
        self._asked += data

    async def read(self, most):
        if self._sent:
            return b""
        self._sent = True
        if b"authenticate" in self._asked:
            return answer(400, {"error": "etcdserver: authentication failed, invalid user ID or password"})
        return answer(200, self._state["list" if b"member/list" in self._asked else "status"])

    def close(self):
        pass


def answer(status, value):
    text = json.dumps(value).encode()
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(text), text)


def scripted(*statuses, learners=()):
    """Each status is id, leader, applied index, and what it lacks."""
    ids = [one[0] for one in statuses]
    listed = {"members": [{"ID": one, "isLearner": one in learners} for one in ids]}
    return Scripted(
        **{
            f"redis-{number}": {
                "list": listed,
                "status": {
                    "header": {"member_id": own},
                    "leader": leader,
                    "raftAppliedIndex": str(index),
                    "isLearner": own in learners,
                    **({"errors": [error]} if error else {}),
                },
            }
            for number, (own, leader, index, error) in enumerate(statuses)
        }
    )


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (scripted(("1", "1", 100, ""), ("2", "1", 100, ""), ("3", "1", 100, "")), ""),
        (scripted(("1", "1", 9000, ""), ("2", "1", 100, ""), ("3", "1", 9000, "")), "redis-1 is 8900 entries behind"),
        (
            scripted(("1", "1", 100, ""), ("2", "2", 100, ""), ("3", "1", 100, "")),
            "the members do not agree on a leader",
        ),
        (
            scripted(("1", "1", 100, ""), ("2", "1", 100, "NOSPACE"), ("3", "1", 100, "")),
            "redis-1: NOSPACE",
        ),
        (
            scripted(("1", "1", 100, ""), ("2", "1", 100, ""), ("3", "1", 100, ""), learners=("3",)),
            "2 members vote: without one there is no quorum",
        ),
    ],
    ids=["whole", "behind", "two leaders", "an alarm", "a learner"],
)
async def test_what_makes_an_application_unhealthy(access, message):
    found = await EtcdProviderFactory().make_provider({}, access).check_health(members.member(0))
    assert (found.is_healthy, found.message) == (not message, message)


async def test_the_successor_is_the_member_that_has_applied_most_and_votes():
    access = scripted(("1", "1", 9000, ""), ("2", "1", 100, ""), ("3", "1", 9000, ""), learners=("3",))
    report = await EtcdProviderFactory().make_provider({}, access).check_progress(members.member(0))
    assert report.progress is STALLED
    assert "no other member can take over" in report.message


async def test_a_password_that_is_refused_is_named_and_not_shown():
    access = scripted(("1", "1", 100, ""), ("2", "1", 100, ""), ("3", "1", 100, ""))
    refused = EtcdProviderFactory().make_provider({"passwordSecret": {"name": "auth"}}, access)
    with pytest.raises(LastcallError, match="the password of Secret auth is refused") as caught:
        await refused.check_health(members.member(0))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "violation"),
    [
        ({"port": 0}, "spec.provider.etcd.port: 0: "),
        ({"caSecret": {"name": "ca"}}, 'spec.provider.etcd.caSecret: "ca": needs scheme https'),
        ({"clientCertificateSecret": {"name": "c"}}, 'spec.provider.etcd.clientCertificateSecret: "c": needs scheme'),
        ({"pasword": 1}, "spec.provider.etcd.pasword: 1: unknown field"),
    ],
)
def test_settings_that_are_wrong_are_named(settings, violation):
    assert any(one.startswith(violation) for one in EtcdProviderFactory().check_settings(settings))
    with pytest.raises(InvalidInput):
        EtcdProviderFactory().make_provider(settings, members.Loopback())
