"""The real Helm installs, upgrades, rolls back and uninstalls the chart in a lab with RBAC."""

import shutil

import pytest
from support.common.libraries import need_library
from support.kube import helm
from support.kube.kubectl import Kubectl, Lab

need_library("helm_python", "Helm as a library exists for Linux on x86-64 alone")
pytestmark = [pytest.mark.timeout(270), pytest.mark.xdist_group("helm")]

NAME = "lastcall"
DEFINITIONS = {
    "customresourcedefinition.apiextensions.k8s.io/fencepolicies.lastcall.dev",
    "customresourcedefinition.apiextensions.k8s.io/nodeshutdowns.lastcall.dev",
}
COMES_AND_GOES = (
    "events",
    "events.events.k8s.io",
    "endpointslices.discovery.k8s.io",
    "nodeshutdowns.lastcall.dev",
    "fencepolicies.lastcall.dev",
)
AGENT = "system:serviceaccount:lastcall-system:lastcall-agent"
POLICY = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": "workers"}, "spec": {}}


@pytest.fixture
def kubectl(tmp_path):
    """Of a cluster with one node, and the namespace as docs/how-to/install.md makes it."""
    with Lab(tmp_path) as lab:
        lab.node("n1")
        kubectl = Kubectl(lab.kubeconfig, tmp_path, namespace="")
        kubectl("create namespace", helm.NAMESPACE)
        kubectl("label namespace", helm.NAMESPACE, "pod-security.kubernetes.io/enforce=privileged")
        yield kubectl


@pytest.fixture
def release(kubectl, tmp_path):
    return helm.Helm(tmp_path / "kubeconfig", tmp_path)


def everything(kubectl):
    """The names of all objects that a list shows."""
    kinds = kubectl("api-resources --verbs=list -o name").split()
    listed = kubectl(f"get {','.join(one for one in kinds if one not in COMES_AND_GOES)} -A -o name")
    return set(listed.split())


def wait_for_agents(kubectl):
    kubectl(f"-n {helm.NAMESPACE} rollout status daemonset/lastcall-agent --timeout=60s")


def deployed(kubectl, path):
    return kubectl(f"-n {helm.NAMESPACE} get deployment lastcall-controller -o jsonpath={{.spec{path}}}")


def test_installed_upgraded_rolled_back_uninstalled(kubectl, release):
    before = everything(kubectl)
    made = release("install", helm.CHART, NAME)
    assert (made["status"], made["revision"], made["app_version"]) == ("deployed", 1, "0.2.0")
    wait_for_agents(kubectl)
    kubectl("wait crd --all --for=condition=Established --timeout=60s")
    assert kubectl(f"auth can-i create nodeshutdowns.lastcall.dev --as={AGENT}") == "yes\n"
    assert kubectl(f"auth can-i delete pods --as={AGENT}") == "yes\n", "which the policy restricts to its node"
    assert kubectl.run(f"auth can-i create pods/eviction --as={AGENT}").out == "no\n"

    kubectl("apply -f -", given=POLICY)
    release("upgrade", helm.CHART, NAME, {"controller": {"replicas": 1, "mode": "Observe"}})
    assert deployed(kubectl, ".replicas") == "1"
    assert "--mode=Observe" in deployed(kubectl, ".template.spec.containers[0].args")
    release("rollback", NAME)
    assert deployed(kubectl, ".replicas") == "2"
    assert "--mode" not in deployed(kubectl, ".template.spec.containers[0].args")
    history = [(one["revision"], one["status"]) for one in release("history", NAME)]
    assert history == [(1, "superseded"), (2, "superseded"), (3, "deployed")]

    release("uninstall", NAME)
    kubectl.until(
        "get pods,namespaces -A -o name", lambda said: "lastcall-a" not in said and "lastcall-nodes" not in said
    )
    kubectl.until("get pods -A -o name", lambda said: said == "")
    assert everything(kubectl) - before == DEFINITIONS
    assert kubectl("get fencepolicies -o name") == "fencepolicy.lastcall.dev/workers\n", "objects are kept too"

    release("install", helm.CHART, NAME)
    wait_for_agents(kubectl)
    assert kubectl("get fencepolicies -o name") == "fencepolicy.lastcall.dev/workers\n"


BINDINGS = ("agent", "agent-auth-delegator", "controller", "metrics-reader")


def operator_kind(kind):
    """A definition as the Prometheus operator brings it, without its schema."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {
            "group": "monitoring.coreos.com",
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


def test_monitoring_is_installed_and_leaves_nothing(kubectl, release):
    for kind in ("PodMonitor", "PrometheusRule"):
        kubectl("apply -f -", given=operator_kind(kind))
    kubectl("wait crd --all --for=condition=Established --timeout=60s")
    on = {"enabled": True}
    agent = {"metrics": {"onNodeAddress": True}}
    release(
        "install", helm.CHART, NAME, {"agent": agent, "monitoring": {"podMonitor": on, "rules": on, "dashboard": on}}
    )
    kinds = "podmonitors,prometheusrules,configmaps,secrets,clusterrolebindings"
    assert set(kubectl(f"get {kinds} -n {helm.NAMESPACE} -o name -l app.kubernetes.io/part-of=lastcall").split()) == {
        *(f"clusterrolebinding.rbac.authorization.k8s.io/lastcall-{one}" for one in BINDINGS),
        "podmonitor.monitoring.coreos.com/lastcall-agent",
        "podmonitor.monitoring.coreos.com/lastcall-controller",
        "secret/lastcall-metrics-reader",
        "prometheusrule.monitoring.coreos.com/lastcall",
        "configmap/lastcall-agent",
        "configmap/lastcall-dashboard",
    }
    release("uninstall", NAME)
    kubectl.until(f"get {kinds} -A -o name -l app.kubernetes.io/part-of=lastcall", lambda said: said == "")


def test_an_upgrade_changes_the_definitions(kubectl, release, tmp_path):
    """They are templates: Helm never upgrades what is in a chart's crds/."""
    older = tmp_path / "older"
    shutil.copytree(helm.CHART, older)
    template = older / "templates/customresourcedefinitions.yaml"
    template.write_text(template.read_text().replace("- fp\n", "- older\n"))
    names = "get crd fencepolicies.lastcall.dev -o jsonpath={.spec.names.shortNames}"
    release("install", older, NAME)
    assert kubectl(names) == '["older"]'
    release("upgrade", helm.CHART, NAME)
    assert kubectl(names) == '["fp"]'


def test_a_new_configuration_starts_new_agents(kubectl, release):
    values = {"agent": {"config": {"mode": "Enforce"}}}
    release("install", helm.CHART, NAME)
    wait_for_agents(kubectl)
    pods = kubectl("get pods -A -l app.kubernetes.io/component=agent -o name")
    release("upgrade", helm.CHART, NAME, {"controller": {"replicas": 1}})
    wait_for_agents(kubectl)
    assert kubectl("get pods -A -l app.kubernetes.io/component=agent -o name") == pods
    release("upgrade", helm.CHART, NAME, values)
    kubectl.until("get pods -A -l app.kubernetes.io/component=agent -o name", lambda said: said not in (pods, ""))
    config = kubectl(f"-n {helm.NAMESPACE} get configmap lastcall-agent -o jsonpath={{.data}}")
    assert "mode: Enforce" in config


def test_a_leader_keeps_its_lease_over_an_upgrade(kubectl, release):
    """Leaders write the spec of the Lease, which the chart leaves empty."""
    release("install", helm.CHART, NAME)
    lease = f"-n {helm.NAMESPACE} %s lease lastcall-controller"
    kubectl(lease % "patch", "--type=merge", "-p", '{"spec": {"holderIdentity": "pod-1"}}')
    release("upgrade", helm.CHART, NAME, {"controller": {"replicas": 1}})
    assert kubectl(f"{lease % 'get'} -o jsonpath={{.spec.holderIdentity}}") == "pod-1"


def test_what_the_guard_writes_outlives_an_upgrade(kubectl, release):
    """Its certificate, and the authority and the path in the webhook configuration; an uninstall leaves no webhook."""
    guard = {"enabled": True, "replicas": 0}
    release("install", helm.CHART, NAME, {"guard": guard})
    secret = f"-n {helm.NAMESPACE} %s secret lastcall-guard-tls"
    configuration = "%s validatingwebhookconfiguration lastcall-guard"
    kubectl(secret % "patch", "--type=merge", "-p", '{"data": {"tls.key": "a2V5"}}')
    written = kubectl.json(configuration % "get")
    for webhook in written["webhooks"]:
        webhook["clientConfig"] |= {"caBundle": "YQ=="}
        webhook["clientConfig"]["service"]["path"] = "/review/token"
    kubectl("replace -f -", given=written)
    release("upgrade", helm.CHART, NAME, {"guard": guard | {"failurePolicy": "Fail"}})
    assert kubectl(f"{secret % 'get'} -o jsonpath={{.data}}") == '{"tls.key":"a2V5"}'
    webhooks = kubectl.json(configuration % "get")["webhooks"]
    assert {one["failurePolicy"] for one in webhooks} == {"Fail"}
    assert {one["clientConfig"]["service"]["path"] for one in webhooks} == {"/review/token"}
    assert {one["clientConfig"]["caBundle"] for one in webhooks} == {"YQ=="}
    release("uninstall", NAME)
    assert kubectl("get validatingwebhookconfigurations -o name") == ""
    assert "guardpolicies.lastcall.dev" in kubectl("get crd -o name"), "with all its objects"


def test_a_bad_value_changes_nothing(kubectl, release):
    release("install", helm.CHART, NAME)
    with pytest.raises(helm.HelmFailed, match="specifications of the schema"):
        release("upgrade", helm.CHART, NAME, {"controller": {"replicas": "two"}})
    assert [one["revision"] for one in release("history", NAME)] == [1]
