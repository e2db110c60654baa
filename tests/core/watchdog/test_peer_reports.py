"""What agents write of others that they hear, in virtual time at the lab's API server, and what a controller makes of it."""

import asyncio

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.watchdog.peer_nodes import BOUND, SETTINGS, together

from lastcall import names
from lastcall.adapters.kube.resources import LEASES
from lastcall.errors import InvalidInput
from lastcall.failover.evidence.assessment import BootState, assess
from lastcall.failover.evidence.facts import Boot, NodesWithoutOutageReport, PeerHeard, WatchdogSeen
from lastcall.failover.evidence.proofs import FRESH
from lastcall.model.watchdog import WatchdogTiming
from lastcall.model.watchdog_peer_reports import WITHIN, parse_annotation
from lastcall.watchdog.messages import PeerQuestion
from lastcall.watchdog.received_questions import ReceivedQuestion, record_question
from lastcall.watchdog.received_questions import reports_to_publish as now_told

pytestmark = pytest.mark.timeout(120)

# -- the agents --------------------------------------------------------------------------------------------------------


async def annotation(cluster, name):
    """What the node's Lease says of others; None if it says nothing."""
    lease = await cluster.admin.get(LEASES, name, namespace=names.NODES_NAMESPACE)
    return lease["metadata"]["annotations"].get(names.PEERS_HEARD)


async def heard(cluster, name):
    return parse_annotation({names.PEERS_HEARD: await annotation(cluster, name) or ""})


def writes(machine):
    return machine.line.asked.count("PATCH")


def test_who_loses_the_server_alone_is_told_of_in_renewals_that_are_made_anyway():
    async def scene(cluster):
        await asyncio.sleep(100)
        first, second = cluster.machines["n1"], cluster.machines["n2"]
        assert await annotation(cluster, "n1") is None
        before, begun = writes(first), cluster.now
        second.cut_off(peers=False)
        await asyncio.sleep(SETTINGS.timing_with().report_after + 3 * SETTINGS.pet_seconds)
        for name in ("n1", "n3"):
            found = await heard(cluster, name)
            assert found.keys() == {"n2"}
            assert found["n2"].boot_id == second.boot_id
            assert 0 <= found["n2"].ago <= SETTINGS.pet_seconds + 1
        assert second.boot_id in cluster.signs
        assert cluster.now - cluster.signs[second.boot_id].at <= 2 * SETTINGS.pet_seconds + 1
        renewals = (cluster.now - begun) / SETTINGS.pet_seconds
        assert writes(first) - before <= renewals + 2

    together(scene)


def test_when_nobody_is_heard_any_more_the_annotation_goes():
    async def scene(cluster):
        await asyncio.sleep(100)
        second = cluster.machines["n2"]
        second.cut_off(peers=False)
        await asyncio.sleep(SETTINGS.timing_with().report_after + 2 * SETTINGS.pet_seconds)
        assert (await heard(cluster, "n1")).keys() == {"n2"}
        cluster.heal()
        await asyncio.sleep(SETTINGS.pet_seconds)
        assert (await heard(cluster, "n1"))["n2"].ago > 1, "it asks no more"
        await asyncio.sleep(WITHIN + 2 * SETTINGS.pet_seconds)
        assert await annotation(cluster, "n1") is None
        assert second.resets == []

    together(scene)


def test_one_that_nobody_reaches_is_not_told_of():
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.machines["n2"].cut_off()
        await asyncio.sleep(BOUND)
        assert await annotation(cluster, "n1") is None
        assert cluster.signs == {}

    together(scene)


def test_after_an_outage_that_all_had_nothing_is_told_of_all_of_them():
    async def scene(cluster):
        await asyncio.sleep(100)
        cluster.outage()
        await asyncio.sleep(200)
        cluster.heal()
        await asyncio.sleep(3 * SETTINGS.pet_seconds)
        found = [await heard(cluster, name) for name in cluster.machines]
        assert sum(map(len, found)) <= len(found), "but for who came back a moment after another one"

    together(scene, size=5)


def question(asked, boot="b"):
    return PeerQuestion(b"n" * 16, "n2", boot, asked)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 5), st.sampled_from("ab")), max_size=20))
def test_a_repeated_question_is_never_younger_than_it_was(course):
    note = None
    for now, asked, boot in sorted(course):
        before = note
        note = record_question(note, question(asked, boot), now)
        if before and before.question.boot_id == boot:
            assert note.question.asked >= before.question.asked
            assert (note.at == before.at) if note.question == before.question else (note.at == now)
        assert note.at <= now


@pytest.mark.parametrize(("ago", "told_of"), [(0.0, True), (WITHIN - 0.1, True), (WITHIN, False)])
def test_for_a_minute_it_is_told(ago, told_of):
    assert (now_told({"n2": ReceivedQuestion(question(1), 100.0)}, 100.0 + ago) != {}) is told_of


# -- the bound of a node that was heard until it was reset -------------------------------------------------------------


def test_a_node_that_is_heard_until_its_reset_is_proved_dead_though_all_is_seen_late():
    """Its pets reach the device late, so that it fires late; what the controller sees of the Leases comes as late as two
    renewals are apart."""

    async def scene(cluster):
        machine = cluster.machines["n2"]
        await asyncio.sleep(50)
        machine.dog.late = SETTINGS.timeout_seconds - SETTINGS.pet_seconds - 1
        cluster.watch_lag = 2 * SETTINGS.pet_seconds
        await asyncio.sleep(100)
        cut = cluster.now
        machine.cut_off(peers=False)
        await asyncio.sleep(300)
        [reset] = machine.resets
        assert reset < cut + BOUND
        sign = cluster.signs["boot-n2-0"]
        assert sign.at >= reset - SETTINGS.pet_seconds - 1, "it was heard until then"
        assert cluster.proofs["boot-n2-0"] < cut + BOUND + 5 * cluster.watch_lag

    together(scene)


@st.composite
def settings(draw):
    pet = draw(st.floats(0.5, 20))
    drift = draw(st.sampled_from([0.001, 0.01, 0.1]))
    timeout = 2 * pet * (1 + drift) * draw(st.floats(1.001, 5))
    try:
        return WatchdogTiming(
            lease=draw(st.floats(4, 200)), pet=pet, timeout=timeout, drift=drift, peers=draw(st.booleans())
        )
    except InvalidInput:
        assume(False)


@given(settings(), st.data())
def test_the_word_of_others_does_not_stand_against_a_bound_that_has_passed(dog, data):
    """A node asks until it is reset, at the latest two timeouts after its lease: in the third one its agent is dead. A peer
    hears that, writes it when it pets next, and is answered half a pet later at the latest; so late it is seen."""
    sent, clock = 100.0, 1 + dog.drift
    renewed = sent + data.draw(st.floats(0, 5))
    last = sent + (dog.lease + 2 * dog.timeout) * data.draw(st.floats(0, clock))
    seen_late = data.draw(st.floats(0, 1.5)) * dog.pet * clock
    over = dog.reset_by(renewed, renewed)
    now = max(over, renewed + FRESH, last + seen_late + FRESH) + 0.001
    peers = NodesWithoutOutageReport(nodes=3, calm=3, since=renewed, until=now) if dog.peers else None
    fact = WatchdogSeen(boot_id="b", settings=dog, renewed=renewed, read=now, reachable=3, nodes=3, peers=peers)
    sign = PeerHeard(boot_id="b", peer="n1", question=1, at=last + seen_late)
    boot = Boot(id="b", system_uuid="m", since=0.0)
    assert assess(boot, [fact, sign], now).state is BootState.DEAD
    refuted = PeerHeard(boot_id="b", peer="n1", question=2, at=over)
    assert assess(boot, [fact, sign, refuted], now + 1000).state is BootState.ALIVE
