"""The unmodified kubectl applies ``lastcall manifests controller`` to a lab: on its own side, and on the server's."""

import json
import subprocess
import sys

import pytest
from support.failover.policy_cases import GOOD, fencer, policy
from support.kube.kubectl import Kubectl, Lab, rows

pytestmark = pytest.mark.timeout(270)

KINDS = (
    "namespaces,customresourcedefinitions,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,leases,"
    "poddisruptionbudgets,deployments,networkpolicies,configmaps,daemonsets,validatingadmissionpolicies,"
    "validatingadmissionpolicybindings,validatingwebhookconfigurations,services"
)


def printed(*arguments):
    line = [sys.executable, "-m", "lastcall", "manifests", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def manifests():
    return printed("controller", "--replicas=0")


@pytest.fixture
def kubectl(tmp_path):
    """Of a cluster with nothing in it; in no namespace, as each object names its own."""
    with Lab(tmp_path) as lab:
        yield Kubectl(lab.kubeconfig, tmp_path, namespace="")


def revisions(kubectl):
    """Of everything of lastcall's, by kind, namespace and name."""
    found = [(one["kind"], one["metadata"]) for one in kubectl.json(f"get {KINDS} -A")["items"]]
    ours = [(kind, one) for kind, one in found if "lastcall" in one["name"]]
    return {(kind, one.get("namespace"), one["name"]): one["resourceVersion"] for kind, one in ours}


def settled(kubectl):
    """When the controllers have written what they write of it."""
    kubectl("wait crd --all --for=condition=Established --timeout=60s")
    where = "-n lastcall-system -o jsonpath={.metadata.generation}={.status.observedGeneration}"
    # The controller writes an annotation of the Deployment, which counts as a change of it.
    kubectl.until(f"get deployment lastcall-controller {where}", lambda said: said == "2=2")
    kubectl.until(f"get pdb lastcall-controller {where}", lambda said: said == "1=1")
    return revisions(kubectl)


def test_applied_twice_it_changes_nothing(kubectl, manifests):
    assert {line.rpartition(" ")[2] for line in kubectl("apply -f -", given=manifests).splitlines()} == {"created"}
    before = settled(kubectl)
    assert len(before) == 17
    said = kubectl("apply -f -", given=manifests).splitlines()
    # kubectl sends the selector of every budget at each apply: policy/v1 gives it the patch strategy "replace".
    assert [line for line in said if not line.endswith("unchanged")] in (
        [],
        ["poddisruptionbudget.policy/lastcall-controller configured"],
    )
    assert revisions(kubectl) == before


def test_a_guard_applied_twice_changes_nothing_and_keeps_what_it_wrote(kubectl):
    manifests = printed("guard", "--replicas=0") + printed("guard-namespace", "default")
    kubectl("apply -f -", given=manifests)
    kubectl("wait crd --all --for=condition=Established --timeout=60s")
    for kind in ("deployment", "pdb"):
        kubectl.until(
            f"get {kind} lastcall-guard -n lastcall-system -o jsonpath={{.status.observedGeneration}}",
            lambda said: said != "",
        )
    written = [{"op": "add", "path": f"/webhooks/{at}/clientConfig/caBundle", "value": "YQ=="} for at in (0, 1)]
    kubectl("patch validatingwebhookconfiguration lastcall-guard --type=json -p", json.dumps(written))
    before = revisions(kubectl)
    said = kubectl("apply -f -", given=manifests).splitlines()
    assert [line for line in said if not line.endswith("unchanged")] in (
        [],
        ["poddisruptionbudget.policy/lastcall-guard configured"],
    )
    assert revisions(kubectl) == before
    assert "lastcall-guard" in {name for kind, _, name in before if kind == "ValidatingWebhookConfiguration"}


@pytest.mark.parametrize("line", ["apply -f -", "apply --server-side -f -"])
def test_agent_and_controller_applied_twice_change_nothing(kubectl, manifests, line):
    both = printed("agent", "--own-node", "--watchdog-peers") + manifests
    kubectl(line, given=both)
    kubectl.until(
        "get daemonset -n lastcall-system lastcall-agent -o jsonpath={.metadata.generation}={.status.observedGeneration}",
        lambda said: said == "1=1",
    )
    before = settled(kubectl)
    assert len(before) == 20 + 14
    said = kubectl(line, given=both).splitlines()
    changed = [one for one in said if not one.endswith(("unchanged", "serverside-applied"))]
    assert changed in ([], ["poddisruptionbudget.policy/lastcall-controller configured"])
    assert revisions(kubectl) == before


def test_applied_twice_by_the_server_it_changes_nothing(kubectl, manifests):
    line = "apply --server-side -f -"
    assert len(kubectl(line, given=manifests).splitlines()) == 17
    before = settled(kubectl)
    kubectl(line, given=manifests)
    assert revisions(kubectl) == before
    kubectl("apply -f -", given=policy("workers", mode="Enforce", fencers=[fencer()]))
    heading, row = rows(kubectl("get fencepolicies"))
    assert heading == ["NAME", "MODE", "PRIORITY", "ACCEPTED", "NODES", "AGE"]
    assert row[:3] == ["workers", "Enforce", "0"]
    said = kubectl.fails("apply -f -", given=policy("broken", suspectAfter="1ms"))
    assert 'spec.suspectAfter: Invalid value: "1ms": must be 1s to 1h' in said
    lease = "get lease -n lastcall-system lastcall-controller -o jsonpath={.spec}"
    assert kubectl(lease) == "{}"


def test_a_policy_that_is_applied_twice_is_unchanged(kubectl, manifests):
    """All kinds of fencers, with all that the API server could fill in left out."""
    kubectl("apply -f -", given=manifests)
    kubectl("wait crd --all --for=condition=Established --timeout=60s")
    for number, (name, spec) in enumerate(GOOD.items()):
        text = json.dumps(policy(f"policy-{number}", **spec))
        assert kubectl("apply -f -", given=text).endswith(" created\n")
        assert kubectl("apply -f -", given=text).endswith(" unchanged\n"), name


@pytest.mark.parametrize("line", ["apply -f -", "apply --server-side -f -"])
def test_policies_for_pods_applied_twice_change_nothing(kubectl, line):
    policies = printed("pod-policies", "--settle-seconds=3")
    kinds = "mutatingadmissionpolicies,mutatingadmissionpolicybindings"
    kubectl(line, given=policies)
    before = [one["metadata"]["resourceVersion"] for one in kubectl.json(f"get {kinds}")["items"]]
    said = kubectl(line, given=policies).splitlines()
    assert [one for one in said if not one.endswith(("unchanged", "serverside-applied"))] == []
    assert len(before) == 4
    assert [one["metadata"]["resourceVersion"] for one in kubectl.json(f"get {kinds}")["items"]] == before


def test_a_pod_applied_twice_stays_as_the_policies_made_it(kubectl):
    """Without a controller its grace period is the manifest's, which kubectl compares."""
    kubectl("apply -f -", given=printed("pod-policies"))
    kubectl("label namespace default lastcall.dev/settle-seconds=2")
    container = {"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 20},
    }
    for line in ("apply -f -", "apply --server-side --force-conflicts -f -"):
        kubectl(line, given=pod)
        kubectl(line, given=pod)
        made = kubectl.json("get pod p -n default")
        assert made["spec"]["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 2}}}
        assert made["metadata"]["annotations"]["lastcall.dev/sleep-seconds-added"] == "2"
