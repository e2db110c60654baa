"""What the unmodified kubectl applies to the lab: by itself and on the server, and what it says of the difference."""

import json

import pytest
from support.kube.kubectl import config_map, items, kubectl, lab, stored, workload  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


def test_apply(kubectl, lab):  # noqa: F811
    a = config_map("a", color="red", size="1")
    assert kubectl("apply -f -", given=a) == "configmap/a created\n"
    assert kubectl("apply -f -", given=a) == "configmap/a unchanged\n"
    kubectl("patch cm a --type=merge -p", json.dumps({"data": {"kept": "yes"}}))
    assert kubectl("apply -f -", given=config_map("a", color="blue")) == "configmap/a configured\n"
    assert stored(lab, kubectl, "a")["data"] == {"color": "blue", "kept": "yes"}, "size was ours and is not any more"


def test_apply_to_what_was_created_otherwise(kubectl):  # noqa: F811
    kubectl("create -f -", given=config_map("a", color="red"))
    said = kubectl.run("apply -f -", given=config_map("a", color="red"))
    assert (said.out, said.code) == ("configmap/a configured\n", 0)
    assert "missing the kubectl.kubernetes.io/last-applied-configuration annotation" in said.err


def test_apply_of_workloads_merges_by_their_keys(kubectl, lab):  # noqa: F811
    web = workload("Deployment", "web", replicas=0)
    kubectl("apply -f -", given=web)
    kubectl("set env deploy/web ADDED=1")
    web["spec"]["template"]["spec"]["containers"].append({"name": "beside", "image": "log:1"})
    kubectl("apply -f -", given=web)
    containers = stored(lab, kubectl, "web", "deployments.apps")["spec"]["template"]["spec"]["containers"]
    assert [one["name"] for one in containers] == ["main", "beside"]
    assert containers[0]["env"] == [{"name": "ADDED", "value": "1"}]


def test_apply_of_many_and_prune(kubectl, lab):  # noqa: F811
    def maps(*names):
        return items(*(config_map(name, labels={"set": "one"}) for name in names))

    assert kubectl("apply -f -", given=maps("a", "b")) == "configmap/a created\nconfigmap/b created\n"
    prune = "apply -f - --prune -l set=one --prune-allowlist=core/v1/ConfigMap"
    assert kubectl(prune, given=maps("a", "c")) == "configmap/a unchanged\nconfigmap/c created\nconfigmap/b pruned\n"
    assert stored(lab, kubectl, "b") is None


def test_apply_on_the_server(kubectl, lab):  # noqa: F811
    a = config_map("a", color="red", size="1")
    assert kubectl("apply --server-side -f -", given=a) == "configmap/a serverside-applied\n"
    said = kubectl.fails("apply --server-side --field-manager=other -f -", given=config_map("a", color="blue"))
    assert said.startswith('error: Apply failed with 1 conflict: conflict with "kubectl": .data.color\n')
    assert "--force-conflicts" in said
    force = "apply --server-side --field-manager=other --force-conflicts -f -"
    assert kubectl(force, given=config_map("a", color="blue")) == "configmap/a serverside-applied\n"
    kubectl("apply --server-side -f -", given=config_map("a", more="x"))
    assert stored(lab, kubectl, "a")["data"] == {"color": "blue", "more": "x"}
    managers = kubectl.json("get cm a --show-managed-fields")["metadata"]["managedFields"]
    assert {(one["manager"], one["operation"]) for one in managers} == {("kubectl", "Apply"), ("other", "Apply")}


def test_apply_on_the_server_takes_over_from_the_client(kubectl, lab):  # noqa: F811
    kubectl("apply -f -", given=config_map("a", color="red", size="1"))
    assert (
        kubectl("apply --server-side -f -", given=config_map("a", color="blue")) == "configmap/a serverside-applied\n"
    )
    assert stored(lab, kubectl, "a")["data"] == {"color": "blue"}


def test_apply_dry(kubectl, lab):  # noqa: F811
    kubectl("apply -f -", given=config_map("a", color="red"))
    blue = config_map("a", color="blue")
    assert kubectl("apply --dry-run=client -f -", given=blue) == "configmap/a configured (dry run)\n"
    assert kubectl("apply --dry-run=server -f -", given=blue) == "configmap/a configured (server dry run)\n"
    said = kubectl("apply --server-side --force-conflicts --dry-run=server -f -", given=blue)
    assert said == "configmap/a serverside-applied (server dry run)\n"
    assert stored(lab, kubectl, "a")["data"] == {"color": "red"}


def test_apply_of_a_directory(kubectl, tmp_path, lab):  # noqa: F811
    (tmp_path / "one.json").write_text(json.dumps(config_map("one")))
    (tmp_path / "two.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\n---\n")
    kubectl("apply -f", tmp_path)
    assert stored(lab, kubectl, "one")
    assert stored(lab, kubectl, "two")
    (tmp_path / "kustomization.yaml").write_text("namePrefix: k-\nresources: [one.json]\n")
    assert kubectl("apply -k", tmp_path) == "configmap/k-one created\n"


def test_unknown_fields(kubectl, lab):  # noqa: F811
    wrong = workload("Deployment", "web", replicas=0, replcas=1)
    assert kubectl.fails("apply -f -", given=wrong) == (
        'Error from server (BadRequest): error when creating "STDIN": Deployment in version "v1" cannot be handled as a '
        'Deployment: strict decoding error: unknown field "spec.replcas"\n'
    )
    said = kubectl.run("apply --validate=warn -f -", given=wrong)
    assert (said.out, said.err) == ("deployment.apps/web created\n", 'Warning: unknown field "spec.replcas"\n')
    assert kubectl("create --validate=ignore -f -", given=wrong | {"metadata": {"name": "x"}}) == (
        "deployment.apps/x created\n"
    )
    by_kubectl = 'ValidationError(Deployment.spec): unknown field "replcas" in io.k8s.api.apps.v1.DeploymentSpec'
    assert by_kubectl in kubectl.fails("apply -f -", given=items(wrong)), "lists are checked by kubectl itself"


def test_diff(kubectl, lab):  # noqa: F811
    kubectl("apply -f -", given=config_map("a", color="red"))
    assert kubectl("diff -f -", given=config_map("a", color="red")) == ""
    said = kubectl.run("diff -f -", given=config_map("a", color="blue"))
    assert said.code == 1
    assert {"-  color: red", "+  color: blue"} <= {*said.out.splitlines()}
    said = kubectl.run("diff --server-side -f -", given=config_map("b", color="green"))
    assert (said.code, "+  color: green" in said.out) == (1, True)
    assert stored(lab, kubectl, "b") is None
