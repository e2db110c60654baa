"""What a drain's requests ask for, as they are sent."""

import json

import pytest

from lastcall_lab.simulation.drains.removal_requests import read_removal_request
from lastcall_lab.simulation.truth import RemovalRequest

PODS = "/api/v1/namespaces/shop/pods"


def body(**preconditions):
    return {"preconditions": preconditions} if preconditions else {}


@pytest.mark.parametrize(
    ("method", "target", "sent", "asked"),
    [
        ("POST", f"{PODS}/a/eviction", {"deleteOptions": body(uid="1")}, RemovalRequest("a", "1", evicts=True)),
        ("POST", f"{PODS}/a/eviction?dryRun=", {"deleteOptions": {}}, RemovalRequest("a", "", evicts=True)),
        ("DELETE", f"{PODS}/a", body(uid="1"), RemovalRequest("a", "1", evicts=False)),
        ("DELETE", f"{PODS}/a?x=y", None, RemovalRequest("a", "", evicts=False)),
        ("DELETE", PODS, None, None),
        ("POST", f"{PODS}/a/binding", {}, None),
        ("DELETE", "/apis/coordination.k8s.io/v1/namespaces/n/leases/a", None, None),
    ],
)
def test_a_request_names_a_pod_and_perhaps_its_uid(method, target, sent, asked):
    assert read_removal_request(method, target, json.dumps(sent).encode() if sent else b"") == asked
