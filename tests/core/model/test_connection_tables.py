"""Established connections in the kernel's tables, as kernels print them."""

import pytest

from lastcall.model.connection_tables import count_local, count_tracked

# To a Service's address, to a pod, in closing, from a pod to outside, UDP, IPv6.
TRACKED = """\
ipv4     2 tcp      6 86392 ESTABLISHED src=10.0.1.9 dst=10.96.0.7 sport=40112 dport=80 src=10.244.1.5 dst=10.0.1.9 sport=8080 dport=40112 [ASSURED] mark=0 zone=0 use=2
ipv4     2 tcp      6 431999 ESTABLISHED src=10.0.1.8 dst=10.244.1.5 sport=40113 dport=8080 src=10.244.1.5 dst=10.0.1.8 sport=8080 dport=40113 [ASSURED] mark=0 use=1
ipv4     2 tcp      6 118 TIME_WAIT src=10.0.1.9 dst=10.96.0.7 sport=40110 dport=80 src=10.244.1.5 dst=10.0.1.9 sport=8080 dport=40110 [ASSURED] mark=0 use=1
ipv4     2 tcp      6 431999 ESTABLISHED src=10.244.1.5 dst=192.0.2.1 sport=50000 dport=443 src=192.0.2.1 dst=10.0.1.1 sport=443 dport=50000 [ASSURED] mark=0 use=1
ipv4     2 udp      17 28 src=10.244.1.5 dst=10.96.0.10 sport=5353 dport=53 src=10.244.0.2 dst=10.244.1.5 sport=53 dport=5353 mark=0 use=1
ipv6     10 tcp      6 431999 ESTABLISHED src=fd00:0000:0000:0000:0000:0000:0000:0009 dst=fd00:0000:0000:0000:0000:0000:0001:0005 sport=1 dport=8080 src=fd00:0000:0000:0000:0000:0000:0001:0005 dst=fd00:0000:0000:0000:0000:0000:0000:0009 sport=8080 dport=1 [ASSURED] mark=0 use=1
"""

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"


def row(local, state, remote="0100007F:C350"):
    return f"   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0"


@pytest.mark.parametrize("text", [TRACKED, TRACKED.replace("ipv4     2 ", "").replace("ipv6     10 ", "")])
def test_the_one_who_answers_has_the_connection(text):
    assert count_tracked(text.splitlines()) == {"10.244.1.5": 2, "192.0.2.1": 1, "fd00::1:5": 1}


def test_connections_to_listeners_of_the_host():
    lines = [
        HEAD,
        row("0500007F:1F90", "0A"),  # 127.0.0.5:8080 listens
        row("0500007F:1F90", "01"),
        row("0500007F:1F90", "01"),
        row("0500007F:1F90", "06"),  # TIME_WAIT
        row("0500007F:C350", "01"),  # begun here
        row("0600007F:1F90", "0A"),  # nobody is connected
        row("0700007F:0050", "01"),  # to a listener on all addresses
        row("00000000:0050", "0A"),
        "garbage",
        "1: x:y z 01",
    ]
    assert count_local(lines) == {"127.0.0.5": 2, "127.0.0.6": 0, "127.0.0.7": 1, "0.0.0.0": 0}


def test_ipv6_and_mapped_addresses():
    lines = [
        row("000080FE00000000000000000100000A:0050", "0A"),
        row("0000000000000000FFFF00000500007F:0051", "0A"),
        row("0000000000000000FFFF00000500007F:0051", "01"),
    ]
    assert count_local(lines) == {"fe80::a00:1": 0, "127.0.0.5": 1}
