"""One suite for real UDP sockets on loopback addresses, and for the network that the tests of agents play."""

import asyncio
from random import Random

import pytest

from lastcall.adapters.host.datagrams import bind_udp
from lastcall.errors import LastcallError, Unavailable
from lastcall_lab.fakes.datagrams import FakeNetwork

HOSTS = [f"127.{Random().randrange(1, 250)}.{Random().randrange(1, 250)}.{last}" for last in (1, 2, 3)]


class Real:
    """The first socket takes a port that is free, the others have the same."""

    def __init__(self):
        self.opened = []

    def open(self, address, port=0):
        self.opened.append(bind_udp(address, port))
        return self.opened[-1]

    def close(self):
        for one in self.opened:
            one.close()


class Fake(Real):
    def __init__(self):
        super().__init__()
        self.network = FakeNetwork()

    def open(self, address, port=9468):
        self.opened.append(self.network.open(address, port))
        return self.opened[-1]


@pytest.fixture(params=[Real, Fake], ids=["udp", "fake"])
def sockets(request):
    sockets = request.param()
    yield sockets
    sockets.close()


async def heard(socket):
    async with asyncio.timeout(20):
        return await socket.receive()


async def test_what_is_sent_arrives_with_where_an_answer_goes_to(sockets):
    one = sockets.open(HOSTS[0])
    other = sockets.open(HOSTS[1])
    one.send(b"question", (HOSTS[1], other.bound_address[1]))
    data, sender = await heard(other)
    assert (data, sender) == (b"question", (HOSTS[0], one.bound_address[1]))
    other.send(b"answer", sender)
    assert await heard(one) == (b"answer", (HOSTS[1], other.bound_address[1]))


async def test_datagrams_stay_apart(sockets):
    one = sockets.open(HOSTS[0])
    for number in range(20):
        one.send(b"%d" % number, (HOSTS[0], one.bound_address[1]))
    assert [(await heard(one))[0] for _ in range(20)] == [b"%d" % number for number in range(20)]


async def test_those_that_wait_are_taken_at_once_but_no_more_than_asked_for(sockets):
    one = sockets.open(HOSTS[0])
    assert list(one.receive_waiting(10)) == []
    for number in range(5):
        one.send(b"%d" % number, (HOSTS[0], one.bound_address[1]))
    found = [await heard(one)]
    async with asyncio.timeout(20):
        while len(found) < 4:
            found += one.receive_waiting(4 - len(found))
            await asyncio.sleep(0)
    assert [data for data, _ in found] == [b"0", b"1", b"2", b"3"]
    assert await heard(one) == (b"4", (HOSTS[0], one.bound_address[1]))


async def test_peers_are_heard_apart_from_all_others(sockets):
    """By their address and their port; whoever is no peer any more is one of the others from then on."""
    one = sockets.open(HOSTS[0])
    port = one.bound_address[1]
    peer, stranger, elsewhere = (sockets.open(*where) for where in ((HOSTS[1], port), (HOSTS[2], port), (HOSTS[1], 0)))
    others = one.split_off_peers({HOSTS[0], HOSTS[1], "no address", "::1"})
    assert others.bound_address == one.bound_address
    for sender, said in ((stranger, b"stranger"), (elsewhere, b"another port"), (peer, b"peer")):
        sender.send(said, (HOSTS[0], port))
    assert await heard(one) == (b"peer", peer.bound_address)
    assert {(await heard(others))[0] for _ in range(2)} == {b"stranger", b"another port"}
    others.send(b"answer", stranger.bound_address)
    assert await heard(stranger) == (b"answer", one.bound_address)
    assert one.split_off_peers({HOSTS[2]}) is others
    for sender, said in ((peer, b"was one"), (stranger, b"is one")):
        sender.send(said, (HOSTS[0], port))
    assert (await heard(one))[0] == b"is one"
    assert (await heard(others))[0] == b"was one"


async def test_others_fill_no_buffer_of_peers(sockets):
    one = sockets.open(HOSTS[0])
    peer, stranger = (sockets.open(host, one.bound_address[1]) for host in HOSTS[1:])
    one.split_off_peers({HOSTS[1]})
    for _ in range(20_000):
        stranger.send(b"x" * 100, one.bound_address)
    await asyncio.sleep(0.01)
    peer.send(b"peer", one.bound_address)
    assert await heard(one) == (b"peer", peer.bound_address)


async def test_the_port_is_taken_also_when_peers_are_set_apart(sockets):
    one = sockets.open(HOSTS[0])
    one.split_off_peers({HOSTS[1]})
    with pytest.raises(Unavailable, match="in use"):
        sockets.open(HOSTS[0], one.bound_address[1])


async def test_a_port_that_is_taken(sockets):
    one = sockets.open(HOSTS[0])
    with pytest.raises(Unavailable, match="in use"):
        sockets.open(HOSTS[0], one.bound_address[1])


async def test_nobody_there_is_no_error(sockets):
    one = sockets.open(HOSTS[0])
    gone = sockets.open(HOSTS[1])
    port = gone.bound_address[1]
    gone.close()
    for _ in range(3):
        one.send(b"?", (HOSTS[1], port))
        await asyncio.sleep(0.01)
    one.send(b"!", (HOSTS[0], one.bound_address[1]))
    assert (await heard(one))[0] == b"!"


async def test_no_address(sockets):
    with pytest.raises(LastcallError, match="is no"):
        sockets.open("")


async def test_who_waits_can_be_cancelled(sockets):
    one = sockets.open(HOSTS[0])
    waiting = asyncio.create_task(one.receive())
    await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
