"""A kernel program that gives each datagram to one of two UDP sockets of one address, by its sender.

The sockets share the address by ``SO_REUSEPORT``. The program is classic BPF (``linux/filter.h``), which needs no privilege;
socket(7) describes ``SO_ATTACH_REUSEPORT_CBPF``.
"""

import ctypes
import ipaddress
import socket
import struct
from collections.abc import Collection, Iterator

_SO_ATTACH_REUSEPORT_CBPF = 51
_MOST_INSTRUCTIONS = 4096
"""``BPF_MAXINSNS``."""

_NETWORK_HEADER = 0xFFF00000
"""``SKF_NET_OFF``: offsets from here count from the IP header."""

_LOAD_WORD, _LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x28, 0x15, 0x06
_SOURCE = {4: 12, 6: 8}
"""Where the source address begins in an IP header."""
_PORT = {4: 20, 6: 40}
"""Offset of the source port, for an IP header without options.

A datagram with options may go to the wrong socket, where it is still checked.
"""

_Instruction = tuple[int, int, int, int]


def steer_datagrams(first: socket.socket, peers: Collection[str]) -> None:
    """Attaches a program: the first socket gets what ``peers`` send from its own port, the second one the rest.

    If there are more peers than the kernel allows, the port alone decides. Raises OSError if the kernel rejects the
    program.
    """
    version = 4 if first.family == socket.AF_INET else 6
    port = first.getsockname()[1]
    try:
        _attach_program(first, filter_program(peers, port, version))
    except OSError:
        _attach_program(first, filter_program(None, port, version))


def filter_program(peers: Collection[str] | None, port: int, version: int) -> bytes:
    """A program that returns 0 for ``peers`` with ``port``, 1 for others; ``peers`` None: all addresses (pure)."""
    same_port = [(_LOAD_HALF, 0, 0, _NETWORK_HEADER + _PORT[version]), (_JUMP_IF_EQUAL, 1, 0, port), (_RETURN, 0, 0, 1)]
    if peers is None:
        code = [*same_port, (_RETURN, 0, 0, 0)]
    else:
        lines = (line for one in peers for line in _compare_source(_pack_address(one, version), version))
        code = [*same_port, _load_source(version, 0), *lines, (_RETURN, 0, 0, 1)]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def _pack_address(address: str, version: int) -> bytes:
    """The address as bytes; empty for another IP version, which no datagram of this socket comes from."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return b""
    return found.packed if found.version == version else b""


def _compare_source(address: bytes, version: int) -> Iterator[_Instruction]:
    """Instructions that return 0 if the source is this address, and fall through if not; none for an empty one.

    An address of one word (IPv4) is loaded once for all comparisons: saved instructions leave room for more peers.
    """
    if not address:
        return
    words = struct.unpack(f">{len(address) // 4}I", address)
    if len(words) == 1:
        yield _JUMP_IF_EQUAL, 0, 1, words[0]
    else:
        for index, word in enumerate(words):
            yield _load_source(version, index)
            yield _JUMP_IF_EQUAL, 0, 2 * (len(words) - index) - 1, word
    yield _RETURN, 0, 0, 0


def _load_source(version: int, word: int) -> _Instruction:
    return _LOAD_WORD, 0, 0, _NETWORK_HEADER + _SOURCE[version] + 4 * word


def _attach_program(first: socket.socket, code: bytes) -> None:
    """OSError as setsockopt(2) has it."""
    count = len(code) // struct.calcsize("=HBBI")
    if count > _MOST_INSTRUCTIONS:
        raise OSError(f"a program of {count} instructions is too long")
    buffer = ctypes.create_string_buffer(code, len(code))
    first.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, struct.pack("@HP", count, ctypes.addressof(buffer)))
