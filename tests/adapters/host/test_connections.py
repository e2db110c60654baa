"""The kernel's own tables: of this machine, and of a network namespace with a Service's address as kube-proxy makes it."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lastcall.adapters.host.connections import ConnectionTable

IN_NAMESPACE = """
import json, socket, subprocess
from lastcall.adapters.host.connections import ConnectionTable

SERVICE, POD = "10.96.0.7", "10.244.1.5"
for line in (
    "ip link set lo up",
    f"ip addr add {SERVICE}/32 dev lo",
    f"ip addr add {POD}/32 dev lo",
    f"iptables -t nat -A OUTPUT -d {SERVICE} -p tcp --dport 80 -j DNAT --to-destination {POD}:8080",
    "iptables -A OUTPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT",
):
    subprocess.run(line.split(), check=True)
with socket.create_server((POD, 8080)) as server:
    before = ConnectionTable().count_connections()
    clients = [socket.create_connection((SERVICE, 80)) for _ in range(3)]
    accepted = [server.accept()[0] for _ in clients]
    during = ConnectionTable().count_connections()
print(json.dumps([before.complete, before.count_of(POD), during.count_of(POD), during.count_of("10.244.1.6")]))
"""


def test_connections_of_this_machine():
    with socket.create_server(("127.77.1.2", 0)) as server:
        assert ConnectionTable().count_connections().count_of("127.77.1.2") == 0
        with socket.create_connection(server.getsockname()), server.accept()[0]:
            assert ConnectionTable().count_connections().count_of("127.77.1.2") == 1
        assert ConnectionTable().count_connections().count_of("127.77.1.2") == 0


def test_without_connection_tracking_other_addresses_are_unknown(tmp_path):
    assert ConnectionTable(tmp_path).count_connections().count_of("10.0.0.1") is None


def test_with_connection_tracking_all_are_known(tmp_path):
    line = (
        "tcp 6 9 ESTABLISHED src=10.0.0.9 dst=10.96.0.1 sport=1 dport=80 src=10.0.0.1 dst=10.0.0.9 sport=80 dport=1\n"
    )
    (tmp_path / "nf_conntrack").write_text(2 * line)
    found = ConnectionTable(tmp_path).count_connections()
    assert [found.count_of(address) for address in ("10.0.0.1", "10.0.0.2")] == [2, 0]


@pytest.mark.root
def test_connections_that_the_kernel_tracks():
    if os.geteuid() != 0 or not Path("/proc/net/nf_conntrack").exists() or not shutil.which("iptables"):
        pytest.skip("needs root, iptables and a kernel with nf_conntrack")
    command = ["unshare", "--net", sys.executable, "-c", IN_NAMESPACE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, 0, 3, 0]
