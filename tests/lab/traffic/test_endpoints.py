"""Which endpoints of a Service get connections, and where the lab's nodes reach it."""

import pytest

from lastcall.model.traffic import ServiceEndpoint, select_endpoints
from lastcall_lab.traffic.listen_addresses import ListenAddress, listen_address


def endpoint(address, **conditions):
    return {"addresses": [address], "conditions": conditions}


def slice_of(*found, port=80, name=""):
    return {"endpoints": list(found), "ports": [{"name": name, "port": port}]}


READY = {"ready": True, "serving": True, "terminating": False}
LEAVING = {"ready": False, "serving": True, "terminating": True}
GONE = {"ready": False, "serving": False, "terminating": True}
UNREADY = {"ready": False, "serving": False, "terminating": False}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], []),
        ([endpoint("127.0.0.2", **READY)], ["127.0.0.2"]),
        ([endpoint("127.0.0.2")], ["127.0.0.2"]),
        ([endpoint("127.0.0.2", **READY), endpoint("127.0.0.3", **LEAVING)], ["127.0.0.2"]),
        ([endpoint("127.0.0.2", **UNREADY), endpoint("127.0.0.3", **LEAVING)], ["127.0.0.3"]),
        ([endpoint("127.0.0.2", **GONE), endpoint("127.0.0.3", **UNREADY)], []),
        ([endpoint("127.0.0.3", **READY), endpoint("127.0.0.2", **READY)], ["127.0.0.2", "127.0.0.3"]),
    ],
)
def test_ready_ones_first_and_terminating_ones_when_there_is_no_other(found, expected):
    assert [one.address for one in select_endpoints([slice_of(*found)], "")] == expected


def test_several_slices_and_named_ports():
    slices = [
        slice_of(endpoint("127.0.0.2", **READY), name="http", port=8080),
        slice_of(endpoint("127.0.0.3", **READY), name="http", port=8081),
    ]
    assert select_endpoints(slices, "http") == [ServiceEndpoint("127.0.0.2", 8080), ServiceEndpoint("127.0.0.3", 8081)]
    assert select_endpoints(slices, "metrics") == []


@pytest.mark.parametrize(
    ("port", "node", "privileged", "expected"),
    [
        (80, 0, False, ListenAddress("127.128.3.4", 20080)),
        (80, 0, True, ListenAddress("127.128.3.4", 80)),
        (8080, 2, False, ListenAddress("127.130.3.4", 8080)),
    ],
)
def test_each_node_has_an_address_of_its_own_for_each_service(port, node, privileged, expected):
    assert listen_address("10.96.3.4", port, node, privileged=privileged) == expected
