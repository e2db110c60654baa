"""Established TCP connections by the address that accepted them (pure), from the kernel's tables.

``/proc/net/nf_conntrack`` has the connections that the node forwards to its pods, if the kernel keeps it: after a
Service's address was translated, the source of the reply is the pod. ``/proc/net/tcp`` and ``tcp6`` have those of pods on
the host's network.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Mapping

_ESTABLISHED, _LISTEN = "01", "0A"
_TRACKED = re.compile(r"\btcp\s.*\bESTABLISHED\b.*?\bsrc=\S+.*?\bsrc=(\S+)")


def count_tracked(lines: Iterable[str]) -> Mapping[str, int]:
    """From lines of nf_conntrack."""
    return Counter(str(ipaddress.ip_address(found[1])) for line in lines if (found := _TRACKED.search(line)))


def count_local(lines: Iterable[str]) -> Mapping[str, int]:
    """From lines of tcp or tcp6; an address that is listened on has at least the count 0.

    Only connections to ports that are listened on count, on this address or on all: others were begun here.
    """
    rows = [row for row in map(_split_row, lines) if row]
    listened = {(address, port) for address, port, state in rows if state == _LISTEN}
    everywhere = {port for address, port in listened if ipaddress.ip_address(address).is_unspecified}
    counts = Counter({address: 0 for address, _ in listened})
    for address, port, state in rows:
        if state == _ESTABLISHED and ((address, port) in listened or port in everywhere):
            counts[address] += 1
    return counts


def _split_row(line: str) -> tuple[str, int, str] | None:
    words = line.split()
    if len(words) < 4 or ":" not in words[1]:
        return None
    address, _, port = words[1].partition(":")
    try:
        return _read_address(address), int(port, 16), words[3]
    except ValueError:
        return None


def _read_address(text: str) -> str:
    """The kernel prints words of 32 bits in the machine's order of bytes; all machines of ours are little-endian."""
    data = bytes.fromhex(text)
    swapped = b"".join(data[start : start + 4][::-1] for start in range(0, len(data), 4))
    address = ipaddress.ip_address(swapped)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
