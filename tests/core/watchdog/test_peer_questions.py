"""One agent among peers that a test plays: what it asks, answers and believes, and how much it hears in a second."""

import asyncio
from random import Random

import pytest

from lastcall.errors import Unavailable
from lastcall.model.watchdog_peer_reports import WITHIN
from lastcall.model.watchdog_peers import PeerTerms, fingerprint
from lastcall.ports.watchdog import Membership
from lastcall.watchdog import peers as module
from lastcall.watchdog.messages import PeerAnswer, PeerQuestion, decode_message, encode_message
from lastcall.watchdog.peers import REFRESH_SECONDS, RETRY_SECONDS, WatchdogPeers
from lastcall.watchdog.rate_limits import EACH, OTHERS
from lastcall_lab import virtual
from lastcall_lab.fakes.datagrams import FakeNetwork

KEY, OLD = b"k" * 32, b"o" * 32
PORT, PET, REPORT = 9468, 5.0, 20.0
QUESTION = PeerQuestion(b"q" * 16, "n2", "boot-n2", 1000)
ADDRESSES = {"n1": "10.0.0.1", "n2": "10.0.0.2", "n3": "10.0.0.3", "n4": ""}


class Scene:
    """n1 is the agent, n2 a socket of the test's."""

    def __init__(self):
        self.network = FakeNetwork()
        self.clock = virtual.VirtualClock()
        self.membership = Membership(addresses=dict(ADDRESSES), keys=(KEY,))
        self.failure = None
        self.reads = []
        self.lost = True
        self.peers = WatchdogPeers(
            "n1",
            boot_id="boot-n1",
            port=PORT,
            members=self,
            opens=self.network.open,
            clock=self.clock,
            pet=PET,
            report=REPORT,
            draw=Random(1).randbytes,
        )
        self.peers.lost = lambda: self.lost
        self.other = self.network.open("10.0.0.2", PORT)

    async def read_membership(self):
        self.reads.append(self.clock.boottime())
        if self.failure:
            raise self.failure
        return self.membership

    def say(self, message, keys=(KEY,)):
        self.other.send(encode_message(message, keys), ("10.0.0.1", PORT))

    async def hear(self):
        """The next that is said to n2."""
        async with asyncio.timeout(100):
            data, _ = await self.other.receive()
        return decode_message(data, [KEY])


def among(scene):
    """Runs ``scene(world)`` in virtual time."""

    async def run():
        world = Scene()
        running = asyncio.create_task(world.peers.run())
        await asyncio.sleep(0.1)
        try:
            await scene(world)
            assert not running.done()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    virtual.run(run())


def test_an_answer_counts_from_the_question():
    async def scene(world):
        question = await world.hear()
        asked = world.clock.boottime()
        await asyncio.sleep(12)
        world.say(PeerAnswer(question.nonce, "n2"))
        await asyncio.sleep(0.1)
        assert list(world.peers.reports) == ["n2"]
        assert asked - 1 <= world.peers.reports["n2"] <= asked

    among(scene)


def test_an_older_answer_takes_nothing_away_from_a_later_one():
    async def scene(world):
        first, second = await world.hear(), await world.hear()
        world.say(PeerAnswer(second.nonce, "n2"))
        await asyncio.sleep(0.1)
        later = world.peers.reports["n2"]
        world.say(PeerAnswer(first.nonce, "n2"))
        await asyncio.sleep(0.1)
        assert world.peers.reports["n2"] == later

    among(scene)


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        (lambda nonce: PeerAnswer(nonce, "n2"), [OLD]),
        (lambda _: PeerAnswer(b"x" * 16, "n2"), [KEY]),
        (lambda nonce: PeerAnswer(nonce, "n9"), [KEY]),
        (lambda nonce: PeerAnswer(nonce, "n3"), [KEY]),
        (lambda nonce: PeerAnswer(nonce, "n4"), [KEY]),
    ],
    ids=["of another key", "of another question", "of no node", "for another node", "for a node without an address"],
)
def test_what_is_not_believed(said, keys):
    async def scene(world):
        question = await world.hear()
        world.say(said(question.nonce), keys)
        await asyncio.sleep(1)
        assert not world.peers.reports

    among(scene)


def test_an_answer_that_is_too_late_for_its_question_is_forgotten():
    async def scene(world):
        question = await world.hear()
        await asyncio.sleep(REPORT + 2 * PET)
        world.say(PeerAnswer(question.nonce, "n2"))
        await asyncio.sleep(1)
        assert not world.peers.reports

    among(scene)


def test_with_each_answer_another_word_is_said_and_who_has_the_server_is_silent():
    async def scene(world):
        words = {world.peers.terms.calm}
        for count in (2, 3):
            world.say(QUESTION)
            while await world.hear() != PeerAnswer(b"q" * 16, "n1"):
                pass
            words.add(world.peers.terms.calm)
            assert len(words) == count
        world.lost = False
        await asyncio.sleep(2 * PET)
        sent = world.network.sent
        world.say(QUESTION)
        await asyncio.sleep(20)
        assert world.network.sent == sent + 1
        assert world.peers.terms.calm in words

    among(scene)


def test_all_others_that_have_an_address_are_asked_every_few_seconds():
    async def scene(world):
        third = world.network.open("10.0.0.3", PORT)
        for _ in range(5):
            assert isinstance(await world.hear(), PeerQuestion)
            await third.receive()
        assert world.clock.boottime() == pytest.approx(5 * PET, abs=2)  # the nodes are read first

    among(scene)


def test_what_is_known_of_the_nodes_stays_known_while_they_cannot_be_read():
    async def scene(world):
        assert world.peers.problem == ""
        assert world.peers.nodes == frozenset(ADDRESSES)
        assert world.peers.terms == PeerTerms(nodes=fingerprint(ADDRESSES), calm=world.peers.terms.calm)
        world.failure = Unavailable("cut off")
        await asyncio.sleep(2 * REFRESH_SECONDS)
        assert world.peers.nodes == frozenset(ADDRESSES)
        assert world.peers.problem == ""
        world.failure = None
        world.membership = Membership(addresses={"n1": "10.0.0.1"}, keys=(KEY,))
        await asyncio.sleep(2 * RETRY_SECONDS)
        assert world.peers.nodes == {"n1"}

    among(scene)


@pytest.mark.parametrize(
    ("membership", "problem"),
    [
        (Membership(addresses={"n2": "10.0.0.2"}, keys=(KEY,)), "Node n1 does not exist, or has no internal address"),
        (Membership(addresses={"n1": ""}, keys=(KEY,)), "Node n1 does not exist, or has no internal address"),
        (Membership(addresses={"n1": "10.0.0.2"}, keys=(KEY,)), "UDP 10.0.0.2 port 9468: Address already in use"),
    ],
)
def test_a_node_that_cannot_listen_counts_nobody(membership, problem):
    async def scene(world):
        world.membership = membership
        await asyncio.sleep(2 * REFRESH_SECONDS)
        assert (world.peers.nodes, world.peers.terms, world.peers.problem) == (None, None, problem)
        world.membership = Membership(addresses={"n1": "10.0.0.7"}, keys=(KEY,))
        await asyncio.sleep(2 * RETRY_SECONDS)
        assert world.peers.nodes == {"n1"}

    among(scene)


def test_a_key_is_replaced_while_both_are_believed():
    async def scene(world):
        world.membership = Membership(addresses=dict(ADDRESSES), keys=(OLD, KEY))
        await asyncio.sleep(2 * REFRESH_SECONDS)
        world.say(QUESTION, [KEY])
        async with asyncio.timeout(100):
            while decode_message((await world.other.receive())[0], [OLD]) != PeerAnswer(b"q" * 16, "n1"):
                pass

    among(scene)


def test_keys_that_are_too_short_are_refused():
    async def scene(world):
        world.membership = Membership(addresses={"n1": "10.0.0.1"}, keys=(b"short",))
        await asyncio.sleep(2 * REFRESH_SECONDS)
        assert world.peers.nodes == frozenset(ADDRESSES)  # what was known before stays

    among(scene)


UNSIGNED = encode_message(QUESTION, (b"x" * 32,))


async def flood(world, socket, data, seconds, *, each=0.01, many=300):
    """So many datagrams every so often, which is 30,000 a second."""
    begun = world.clock.boottime()
    while world.clock.boottime() < begun + seconds:
        for _ in range(many):
            socket.send(data, ("10.0.0.1", PORT))
        await asyncio.sleep(each)


@pytest.mark.parametrize(("address", "port", "most"), [("10.0.0.2", 9999, OTHERS), ("10.9.9.9", PORT, OTHERS)])
def test_a_flood_costs_few_signatures(monkeypatch, address, port, most):
    heard = []
    monkeypatch.setattr(module.messages, "decode_message", lambda data, keys: heard.append(data))

    async def scene(world):
        await flood(world, world.network.open(address, port), UNSIGNED, 5)
        assert 4 * most <= len(heard) <= 7 * most

    among(scene)


def test_all_that_peers_say_is_heard_at_a_bounded_pace(monkeypatch):
    heard = []
    monkeypatch.setattr(module.messages, "decode_message", lambda data, keys: heard.append(data))
    monkeypatch.setattr(module, "MOST", EACH)

    async def scene(world):
        third = world.network.open("10.0.0.3", PORT)
        other = asyncio.ensure_future(flood(world, third, UNSIGNED, 5))
        await flood(world, world.other, UNSIGNED, 5)
        await other
        assert 4 * EACH <= len(heard) <= 14 * EACH

    among(scene)


@pytest.mark.parametrize("data", [b"x", b"x" * 2048, UNSIGNED], ids=["short", "long", "unsigned"])
@pytest.mark.parametrize(("address", "port"), [("10.0.0.2", 9999), ("10.9.9.9", PORT)])
def test_a_flood_of_others_silences_no_peer(data, address, port):
    """Each question of n2 is answered."""
    answered = []

    async def scene(world):
        flooding = asyncio.ensure_future(flood(world, world.network.open(address, port), data, 20))
        for number in range(20):
            await asyncio.sleep(0.503)
            world.say(PeerQuestion(bytes([number]) * 16, "n2", "boot-n2", 1000 + number))
        await asyncio.sleep(1)
        flooding.cancel()
        for one, _ in world.other.receive_waiting(1000):
            said = decode_message(one, [KEY])
            if isinstance(said, PeerAnswer):
                answered.append(said.nonce[0])
        assert answered == list(range(20))

    among(scene)


def test_a_mistake_with_one_message_is_no_end(monkeypatch, caplog):
    def broken(data, keys):
        raise ZeroDivisionError

    async def scene(world):
        with monkeypatch.context() as patched:
            patched.setattr(module.messages, "decode_message", broken)
            world.say(QUESTION)
            await asyncio.sleep(1)
        world.say(QUESTION)
        while await world.hear() != PeerAnswer(b"q" * 16, "n1"):
            pass

    among(scene)
    assert "a message of a peer could not be answered" in caplog.text


def test_a_mistake_in_reading_is_no_end(caplog):
    async def scene(world):
        world.failure = ZeroDivisionError()
        await asyncio.sleep(2 * REFRESH_SECONDS)
        assert world.peers.nodes == frozenset(ADDRESSES)
        world.failure = None
        world.membership = Membership(addresses={"n1": "10.0.0.1"}, keys=(KEY,))
        await asyncio.sleep(2 * RETRY_SECONDS)
        assert world.peers.nodes == {"n1"}

    among(scene)
    assert "the watchdog's peers could not be read" in caplog.text


# -- who is heard ------------------------------------------------------------------------------------------------------


def asks(asked, *, name="n2", boot="boot-n2", nonce=b"q"):
    return PeerQuestion(nonce * 16, name, boot, asked)


def test_who_asks_says_so_of_this_boot_and_each_question_has_a_higher_number():
    async def scene(world):
        first, second = await world.hear(), await world.hear()
        assert (first.name, first.boot_id) == (second.name, second.boot_id) == ("n1", "boot-n1")
        assert 0 <= first.asked < second.asked
        assert second.asked - first.asked == pytest.approx(1000 * PET, abs=1)

    among(scene)


def test_who_has_the_server_notes_whom_he_hears_and_forgets_him_after_a_minute():
    async def scene(world):
        world.lost = False
        assert world.peers.heard_reports() == {}
        world.say(asks(1000))
        await asyncio.sleep(10)
        [(name, heard)] = world.peers.heard_reports().items()
        assert (name, heard.boot_id, heard.asked) == ("n2", "boot-n2", 1000)
        assert heard.ago == pytest.approx(10, abs=0.1)
        world.say(asks(6000))
        await asyncio.sleep(1)
        assert world.peers.heard_reports()["n2"].ago == pytest.approx(1, abs=0.1)
        await asyncio.sleep(WITHIN)
        assert world.peers.heard_reports() == {}

    among(scene)


def test_a_question_that_is_repeated_counts_from_when_it_was_heard_first():
    """Also after a minute, and an earlier one after a later one; but each boot counts its own."""

    async def scene(world):
        world.lost = False
        world.say(asks(5000))
        for pause, again in [(10, asks(5000)), (10, asks(4000, nonce=b"p")), (WITHIN, asks(5000))]:
            await asyncio.sleep(pause)
            world.say(again)
            await asyncio.sleep(0.1)
            assert all(one.ago >= 10 and one.asked == 5000 for one in world.peers.heard_reports().values())
        assert world.peers.heard_reports() == {}
        world.say(asks(1, boot="another"))
        await asyncio.sleep(0.1)
        assert world.peers.heard_reports()["n2"].boot_id == "another"

    among(scene)


@pytest.mark.parametrize(
    ("name", "keys"),
    [("n2", [OLD]), ("n9", [KEY]), ("n3", [KEY]), ("n4", [KEY]), ("n1", [KEY])],
    ids=["of another key", "of no node", "for another node", "for a node without an address", "for himself"],
)
def test_who_is_not_believed_to_ask(name, keys):
    async def scene(world):
        world.lost = False
        world.say(asks(1000, name=name), keys)
        await asyncio.sleep(1)
        assert world.peers.heard_reports() == {}

    among(scene)


def test_that_he_asks_himself_is_not_believed_from_his_own_address_either():
    async def scene(world):
        world.lost = False
        world.peers._handle_message(world.other, encode_message(asks(1000, name="n1"), [KEY]), ("10.0.0.1", PORT))
        assert world.peers.heard_reports() == {}

    among(scene)


def test_who_has_lost_the_server_answers_and_notes_nobody():
    """Where many have lost it, nothing is to be told of all of them when it is back."""

    async def scene(world):
        world.say(asks(1000))
        await asyncio.sleep(1)
        world.lost = False
        assert world.peers.heard_reports() == {}

    among(scene)


def test_while_nodes_join_they_are_read_again_soon():
    """An agent that begins before the others would else agree with itself alone for minutes, also once it is cut off."""

    async def scene(world):
        for count in range(len(ADDRESSES) + 1, len(ADDRESSES) + 4):
            addresses = {f"n{number}": f"10.0.0.{number}" for number in range(1, count + 1)}
            world.membership = Membership(addresses=addresses, keys=(KEY,))
            await asyncio.sleep(1.5 * RETRY_SECONDS)
            assert len(world.peers.nodes) == count

    among(scene)


def test_of_a_node_that_is_gone_nothing_is_known():
    async def scene(world):
        world.lost = False
        await asyncio.sleep(REFRESH_SECONDS * 0.7)
        world.membership = Membership(addresses={"n1": "10.0.0.1"}, keys=(KEY,))
        while world.peers.nodes != {"n1"}:
            world.say(asks(int(1000 * world.clock.boottime())))
            await asyncio.sleep(1)
        assert world.peers.heard_reports() == {}

    among(scene)
