"""The addresses to which NAT rules of the kernel send connections (pure), from what ``iptables-save`` and ``nft list`` print.

kube-proxy in mode iptables has a rule ``-j DNAT --to-destination ADDRESS:PORT`` for each endpoint; in mode nftables
``dnat to ADDRESS:PORT``, with IPv6 addresses in brackets.
"""

import ipaddress
import re
from collections.abc import Iterable

_TARGET = re.compile(rb"(?:--to-destination |\bdnat (?:ip6? )?to )\[?([0-9a-fA-F.:]*[0-9a-fA-F])")
_PORT = re.compile(rb"^([0-9.]+):[0-9]+$")


def find_named(texts: Iterable[bytes], addresses: Iterable[str]) -> frozenset[str]:
    """Those of ``addresses`` to which a rule in one of the texts sends connections."""
    wanted = {_normal_form(one): one for one in addresses}
    found = {_normal_form(_without_port(target).decode()) for text in texts for target in _TARGET.findall(text)}
    return frozenset(one for form, one in wanted.items() if form in found and form)


def _without_port(target: bytes) -> bytes:
    found = _PORT.match(target)
    return found[1] if found else target


def _normal_form(address: str) -> str:
    """As Python writes the address; "" for what is none."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return ""
