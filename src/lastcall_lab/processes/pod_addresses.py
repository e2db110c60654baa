"""Chooses a pod's address in 127.0.0.0/8 (pure)."""

import zlib
from collections.abc import Collection

_PODS = 64 * 256 * 254
"""127.64.0.1 to 127.127.255.254: far from the addresses that systemd-resolved (127.0.0.53) and others use."""


def choose_address(node: str, key: str, taken: Collection[str]) -> str:
    """The same address for the same ``namespace/name`` every time, or the next free one if it is taken.

    ``node`` is any text that distinguishes the nodes of one machine, which do not know each other's pods.
    """
    first = zlib.crc32(f"{node} {key}".encode())
    for step in range(_PODS):
        address = _format_address((first + step) % _PODS)
        if address not in taken:
            return address
    raise AssertionError("more pods than addresses")


def _format_address(number: int) -> str:
    rest, host = divmod(number, 254)
    network, subnet = divmod(rest, 256)
    return f"127.{64 + network}.{subnet}.{host + 1}"
