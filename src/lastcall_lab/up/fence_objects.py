"""The objects for fencing the lab's machines by their BMCs: a Secret and a FencePolicy (pure)."""

from lastcall import names
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.machines.redfish_service import USER

NAME = "lab"
_SECRET = "lab-bmc"  # noqa: S105  (the name of an object)


def bmc_secret(namespace: str, *, password: str, authority: str) -> Object:
    """The user of the BMCs, and the certificate that verifies theirs."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": _SECRET, "namespace": namespace},
        "type": "Opaque",
        "stringData": {"username": USER, "password": password, "ca.crt": authority},
    }


def fence_policy(url: str, *, suspect_after: str = "") -> Object:
    """A policy for all nodes: each is a system under its own name in the Redfish service at ``url``.

    ``suspect_after`` is a Go duration; empty: the policy's default.
    """
    redfish = {
        "address": {"value": url},
        "systemID": {"label": "kubernetes.io/hostname"},
        "credentials": {"secretName": _SECRET},
        "caSecret": {"name": _SECRET, "key": "ca.crt"},
    }
    spec: Object = {"mode": "Enforce", "powerOn": "Never", "fencers": [{"name": "bmc", "redfish": redfish}]}
    if suspect_after:
        spec["suspectAfter"] = suspect_after
    return {"apiVersion": names.API_VERSION, "kind": names.FENCE_POLICY, "metadata": {"name": NAME}, "spec": spec}
