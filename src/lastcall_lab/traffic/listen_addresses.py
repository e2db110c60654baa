"""Addresses of Services on a machine without cluster networking: loopback addresses and ports (pure)."""

from typing import NamedTuple

_FIRST_NODE = 128
_PRIVILEGED = 1024
_MAPPED = 20_000


class ListenAddress(NamedTuple):
    """The address of a proxy for one port of a Service, on behalf of one node."""

    address: str
    port: int


def listen_address(cluster_ip: str, port: int, node: int, *, privileged: bool) -> ListenAddress:
    """10.96.x.y of the node with that number is 127.(128 + number).x.y; without privileges port 80 is 20080.

    ``node`` is 0 to 126: so many nodes have addresses of their own on one machine.
    """
    *_, third, fourth = cluster_ip.split(".")
    number = port if privileged or port >= _PRIVILEGED else _MAPPED + port
    return ListenAddress(f"127.{_FIRST_NODE + node}.{third}.{fourth}", number)
