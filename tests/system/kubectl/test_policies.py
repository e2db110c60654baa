"""The real kubectl applies lastcall's own manifests to a lab, and the policy of ``--own-node`` denies what it promises."""

import subprocess
import sys

import pytest
import yaml
from support.kube.kubectl import Kubectl, Lab

from lastcall.names import NODES_NAMESPACE, SYSTEM_NAMESPACE

pytestmark = pytest.mark.timeout(270)
POLICY = "lastcall-agent-own-node"
DENIAL = (
    f"ValidatingAdmissionPolicy '{POLICY}' with binding '{POLICY}' denied request: an agent writes of its own node alone:"
    " its token has to be bound to that Node, or to a pod there"
)


@pytest.fixture
def kubectl(tmp_path):
    """Of a cluster with two nodes; in no namespace, as each object names its own."""
    with Lab(tmp_path) as lab:
        for name in ("n1", "n2"):
            lab.node(name)
        kubectl = Kubectl(lab.kubeconfig, tmp_path, namespace="")
        kubectl("create namespace", SYSTEM_NAMESPACE)
        yield kubectl


def manifests(*options):
    line = [sys.executable, "-m", "lastcall", "manifests", "agent", *options]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def lease(name):
    spec = {"holderIdentity": name, "leaseDurationSeconds": 60}
    metadata = {"name": name, "namespace": NODES_NAMESPACE}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def write_lease(kubectl, name, token):
    """What kubectl says to an agent that writes the Lease of a node, with nothing but its token."""
    return kubectl.run(f"create --dry-run=server -f - --token={token}", given=lease(name))


def token_for(kubectl, node):
    bound = f"--bound-object-kind=Node --bound-object-name={node}" if node else ""
    return kubectl(f"create token lastcall-agent -n {SYSTEM_NAMESPACE} {bound}").strip()


def test_an_agent_writes_of_its_own_node_alone(kubectl):
    with_policy = manifests("--own-node")
    kubectl("apply -f -", given=manifests())
    mine, unbound = token_for(kubectl, "n1"), token_for(kubectl, "")
    for name in ("n1", "n2"):
        assert write_lease(kubectl, name, mine).code == 0, "without the policy every agent writes of every node"
    kubectl("apply -f -", given=with_policy)
    assert write_lease(kubectl, "n1", mine).code == 0
    for name, token in (("n2", mine), ("n1", unbound)):
        said = write_lease(kubectl, name, token)
        assert said.code == 1
        assert f'leases.coordination.k8s.io "{name}" is forbidden: {DENIAL}' in said.err
    assert write_lease(kubectl, "n2", token_for(kubectl, "n2")).code == 0
    kubectl("delete validatingadmissionpolicybinding", POLICY)
    assert write_lease(kubectl, "n2", mine).code == 0


def test_applied_twice_the_policy_is_unchanged(kubectl):
    given = manifests("--own-node")
    kubectl("apply -f -", given=given)
    said = kubectl("apply -f -", given=given).splitlines()
    assert [line for line in said if "admissionpolic" in line] == [
        f"validatingadmissionpolicy.admissionregistration.k8s.io/{POLICY} unchanged",
        f"validatingadmissionpolicybinding.admissionregistration.k8s.io/{POLICY} unchanged",
    ]
    assert yaml.safe_load(kubectl("get validatingadmissionpolicy -o yaml", POLICY))["spec"]["failurePolicy"] == "Fail"
