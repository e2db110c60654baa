"""The program in the kernel that tells peers' datagrams from others': for IPv6, and where it cannot be as it is wanted."""

import asyncio
import errno
import socket

import pytest

from lastcall.adapters.host import datagram_filter
from lastcall.adapters.host.datagrams import bind_udp


async def heard(one):
    async with asyncio.timeout(20):
        return (await one.receive())[0]


@pytest.fixture
def bound():
    """Opens sockets that are closed with the test."""
    opened = []

    def bind(address, port=0):
        opened.append(bind_udp(address, port))
        return opened[-1]

    yield bind
    for one in opened:
        one.close()


async def test_peers_of_ipv6(bound):
    try:
        one = bound("::1")
    except OSError:
        pytest.skip("there is no IPv6 here")
    others = one.split_off_peers({"::2", "::1", "127.0.0.1"})
    other_port = bound("::1")
    one.send(b"peer", one.bound_address)
    other_port.send(b"another port", one.bound_address)
    assert await heard(one) == b"peer"
    assert await heard(others) == b"another port"
    one.split_off_peers({"::2", "1::1", "0:0:0:1::1"})
    one.send(b"was one", one.bound_address)
    assert await heard(others) == b"was one"


async def test_of_more_peers_than_the_kernel_takes_the_port_alone_decides(bound):
    one = bound("127.0.0.1")
    others = one.split_off_peers({f"10.{high}.{low}.1" for high in range(40) for low in range(200)})
    stranger = bound("127.0.0.1")
    one.send(b"the same port", one.bound_address)
    stranger.send(b"another port", one.bound_address)
    assert await heard(one) == b"the same port"
    assert await heard(others) == b"another port"


async def test_a_kernel_without_such_programs(bound, monkeypatch):
    """The one socket goes on to get everything."""

    def refuse(*_):
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    one, other = bound("127.0.0.1"), bound("127.0.0.1")
    monkeypatch.setattr(datagram_filter, "steer_datagrams", refuse)
    assert one.split_off_peers({"127.0.0.9"}) is None
    for _ in range(20):
        other.send(b"x", one.bound_address)
    assert [await heard(one) for _ in range(20)] == [b"x"] * 20
    monkeypatch.undo()
    assert one.split_off_peers({"127.0.0.9"}) is not None


async def test_new_peers_that_the_kernel_does_not_take(bound, monkeypatch):
    """Those of before stay set apart, and the other socket is read on."""

    def refuse(*_):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    one, other = bound("127.0.0.1"), bound("127.0.0.1")
    others = one.split_off_peers({"127.0.0.1"})
    monkeypatch.setattr(datagram_filter, "steer_datagrams", refuse)
    assert one.split_off_peers({"127.0.0.9"}) is others
    one.send(b"peer", one.bound_address)
    other.send(b"another port", one.bound_address)
    assert await heard(one) == b"peer"
    assert await heard(others) == b"another port"


def test_two_thousand_peers_are_not_too_many():
    """``BPF_MAXINSNS`` is 4096; an instruction has 8 bytes."""
    peers = [f"10.0.{number // 250}.{number % 250}" for number in range(2000)]
    assert len(datagram_filter.filter_program(peers, 9468, 4)) <= 4096 * 8


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_no_peers_at_all(family):
    version = 4 if family == socket.AF_INET else 6
    assert len(datagram_filter.filter_program((), 9468, version)) == 5 * 8
