"""Which addresses a provider may connect to (pure).

Whoever writes a GuardPolicy must not reach through the guard what he cannot reach himself.
"""

from collections.abc import Collection, Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds; link-local, as are 169.254.170.2 and .23 (Amazon's credentials of tasks and pods)
        "fd00:ec2::254",  # Amazon
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "168.63.129.16",  # Azure's host agent
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
    )
)
"""Services that give credentials of the machine to whoever asks from it."""

_BROADCAST = ip_address("255.255.255.255")
_THIS_NETWORK = ip_network("0.0.0.0/8")
_NAT64 = IPv6Network("64:ff9b::/96")


def parse_address(text: str) -> Address | None:
    """The address; None if it is none, a name for instance."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def forbidden_kind(address: Address, control: Collection[Address]) -> str:
    """What makes the address forbidden; "" if nothing does.

    ``control``: the addresses of nodes and of the API server.
    """
    for one in _meant_addresses(address):
        if one in _METADATA:
            return "a cloud's metadata service"
        if one in control:
            return "an address of a node or of the API server"
        if one.is_unspecified or one == _BROADCAST or (isinstance(one, IPv4Address) and one in _THIS_NETWORK):
            return "no address of a machine"
        for is_kind, kind in (
            (one.is_loopback, "a loopback address"),
            (one.is_link_local, "a link-local address"),
            (one.is_multicast, "a multicast address"),
        ):
            if is_kind:
                return kind
    return ""


def _meant_addresses(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 address that it stands for."""
    yield address
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            yield inner
