"""The kernel's own table of this machine, and files in place of what this kernel may not have."""

import socket

from lastcall.adapters.host.connections import ConnectionTable


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
