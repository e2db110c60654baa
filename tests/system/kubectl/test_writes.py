"""What the unmodified kubectl changes in the lab: every way to create, patch, edit, label, scale and delete."""

import json
import stat

import pytest
from support.kube.kubectl import config_map, items, kubectl, lab, pod, rows, stored, workload  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


# -- create ------------------------------------------------------------------------------------------------------------

TYPED = {
    "deployment": ("create deployment d --image=web:1 --replicas=0", "deployments.apps", "deployment.apps/d created"),
    "job": ("create job j --image=web:1 -- true", "jobs.batch", "job.batch/j created"),
    "cronjob": ("create cronjob c --image=web:1 --schedule=@daily", "cronjobs.batch", "cronjob.batch/c created"),
    "clusterip": ("create service clusterip s --tcp=80:8080", "services", "service/s created"),
    "nodeport": ("create service nodeport n --tcp=80", "services", "service/n created"),
    "loadbalancer": ("create service loadbalancer l --tcp=80", "services", "service/l created"),
    "externalname": ("create service externalname e --external-name=example.org", "services", "service/e created"),
    "configmap": ("create configmap m --from-literal=color=red", "configmaps", "configmap/m created"),
    "secret": ("create secret generic k --from-literal=p=q", "secrets", "secret/k created"),
    "registry": (
        "create secret docker-registry r --docker-server=a --docker-username=b --docker-password=c",
        "secrets",
        "secret/r created",
    ),
    "serviceaccount": ("create serviceaccount a", "serviceaccounts", "serviceaccount/a created"),
    "pdb": (
        "create pdb b --selector=app=d --max-unavailable=1",
        "poddisruptionbudgets.policy",
        "poddisruptionbudget.policy/b created",
    ),
    "role": (
        "create role o --verb=get --resource=pods",
        "roles.rbac.authorization.k8s.io",
        "role.rbac.authorization.k8s.io/o created",
    ),
    "rolebinding": (
        "create rolebinding i --role=o --serviceaccount=x:a",
        "rolebindings.rbac.authorization.k8s.io",
        "rolebinding.rbac.authorization.k8s.io/i created",
    ),
    "pod": ("run p --image=web:1 --labels=a=b --env=X=1 --port=80", "pods", "pod/p created"),
}
CLUSTER_WIDE = {
    "namespace": ("create namespace wide", "namespaces", "namespace/wide created"),
    "priorityclass": (
        "create priorityclass wide --value=1000 --description=x",
        "priorityclasses.scheduling.k8s.io",
        "priorityclass.scheduling.k8s.io/wide created",
    ),
    "clusterrole": (
        "create clusterrole wide --verb=get --resource=pods",
        "clusterroles.rbac.authorization.k8s.io",
        "clusterrole.rbac.authorization.k8s.io/wide created",
    ),
    "clusterrolebinding": (
        "create clusterrolebinding wide --clusterrole=wide --user=jane",
        "clusterrolebindings.rbac.authorization.k8s.io",
        "clusterrolebinding.rbac.authorization.k8s.io/wide created",
    ),
}


@pytest.mark.parametrize("kind", [*TYPED, *CLUSTER_WIDE])
def test_create(kubectl, lab, kind):  # noqa: F811
    line, resource, said = (TYPED | CLUSTER_WIDE)[kind]
    assert kubectl(line) == f"{said}\n"
    name = said.split("/")[1].split()[0]
    assert lab.stored(resource, "" if kind in CLUSTER_WIDE else kubectl.namespace, name)
    assert "already exists" in kubectl.fails(line)


def test_what_is_created_is_what_was_said(kubectl, lab):  # noqa: F811
    kubectl("create cronjob c --image=web:1 --schedule='*/5 * * * *' --restart=Never -- sh -c 'exit 3'")
    spec = stored(lab, kubectl, "c", "cronjobs.batch")["spec"]
    assert spec["schedule"] == "*/5 * * * *"
    template = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert (template["restartPolicy"], template["containers"][0]["command"]) == ("Never", ["sh", "-c", "exit 3"])
    kubectl("create deployment d --image=web:1 --replicas=0 --port=80")
    spec = stored(lab, kubectl, "d", "deployments.apps")["spec"]
    assert spec["replicas"] == 0
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert spec["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]
    kubectl("create pdb b --selector=app=d --min-available=50%")
    assert stored(lab, kubectl, "b", "poddisruptionbudgets.policy")["spec"]["minAvailable"] == "50%"
    kubectl("create secret generic k --from-literal=p=q --type=example.org/x")
    assert stored(lab, kubectl, "k", "secrets")["data"] == {"p": "cQ=="}


def test_create_refuses_what_is_wrong(kubectl):  # noqa: F811
    said = kubectl.fails("create deployment Web --image=web:1")
    assert said.startswith('error: failed to create deployment: Deployment.apps "Web" is invalid: metadata.name: ')
    said = kubectl.fails("create priorityclass system-mine --value=1")
    assert "priority class names with 'system-' prefix are reserved for system use only" in said
    assert "the server could not find the requested resource" in kubectl.fails("create quota q --hard=pods=1")


def test_expose(kubectl, lab):  # noqa: F811
    kubectl("create deployment d --image=web:1 --replicas=0")
    assert kubectl("expose deployment d --port=80 --target-port=http") == "service/d exposed\n"
    spec = stored(lab, kubectl, "d", "services")["spec"]
    assert spec["selector"] == {"app": "d"}
    assert spec["ports"] == [{"protocol": "TCP", "port": 80, "targetPort": "http"}]
    kubectl("run p --image=web:1 --expose --port=80")
    assert stored(lab, kubectl, "p", "services")["spec"]["selector"] == {"run": "p"}


def test_run_and_dry_runs(kubectl, lab):  # noqa: F811
    assert kubectl("run p --image=web:1 --dry-run=client -o name") == "pod/p\n"
    assert kubectl("run p --image=web:1 --dry-run=server -o jsonpath={.spec.schedulerName}") == "default-scheduler"
    assert kubectl("create cm m --dry-run=server") == "configmap/m created (server dry run)\n"
    assert stored(lab, kubectl, "p", "pods") is None
    assert stored(lab, kubectl, "m") is None


# -- change ------------------------------------------------------------------------------------------------------------


def test_patch(kubectl, lab):  # noqa: F811
    kubectl("create -f -", given=workload("Deployment", "web", replicas=0))

    def spec():
        return stored(lab, kubectl, "web", "deployments.apps")["spec"]

    beside = {"spec": {"template": {"spec": {"containers": [{"name": "beside", "image": "log:1"}]}}}}
    assert kubectl("patch deploy web -p", json.dumps(beside)) == "deployment.apps/web patched\n"
    assert [one["name"] for one in spec()["template"]["spec"]["containers"]] == ["beside", "main"]
    assert kubectl("patch deploy web -p", json.dumps(beside)) == "deployment.apps/web patched (no change)\n"
    kubectl("patch deploy web --type=merge -p", json.dumps(beside))
    assert [one["name"] for one in spec()["template"]["spec"]["containers"]] == ["beside"]
    operations = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "log:2"}]
    kubectl("patch deploy web --type=json -p", json.dumps(operations))
    assert spec()["template"]["spec"]["containers"][0]["image"] == "log:2"
    said = kubectl("patch deploy web --subresource=scale --type=merge -p", json.dumps({"spec": {"replicas": 1}}))
    assert said == "scale.autoscaling/web patched\n"
    assert spec()["replicas"] == 1
    dry = kubectl("patch deploy web --dry-run=server -o jsonpath={.spec.replicas} -p", '{"spec":{"replicas":5}}')
    assert (dry, spec()["replicas"]) == ("5", 1)


def test_patches_that_are_refused(kubectl):  # noqa: F811
    kubectl("create -f -", given=config_map("a", color="red"))
    assert kubectl.fails("patch cm none -p {}") == 'Error from server (NotFound): configmaps "none" not found\n'
    said = kubectl.fails("patch cm a --type=json -p", '[{"op":"test","path":"/data/color","value":"blue"}]')
    assert said == "The request is invalid: the server rejected our request due to an error in our request\n"
    said = kubectl.fails("patch cm a --type=merge -p", '{"metadata":{"name":"b"}}')
    assert said.startswith("Error from server (BadRequest): the name of the object (b")
    said = kubectl.fails("patch cm a --type=merge -p", '{"metadata":{"resourceVersion":"1"}}')
    assert said == (
        'Error from server (Conflict): Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again\n"
    )


def test_replace(kubectl, lab):  # noqa: F811
    kubectl("create -f -", given=config_map("a", color="red"))
    before = stored(lab, kubectl, "a")["metadata"]
    assert kubectl("replace -f -", given=config_map("a", color="blue")) == "configmap/a replaced\n"
    assert stored(lab, kubectl, "a")["data"] == {"color": "blue"}
    said = kubectl("replace --force -f -", given=config_map("a", color="green"))
    assert said == f'configmap "a" deleted from {kubectl.namespace} namespace\nconfigmap/a replaced\n'
    assert stored(lab, kubectl, "a")["metadata"]["uid"] != before["uid"]
    old = config_map("a") | {"metadata": {"name": "a", "resourceVersion": before["resourceVersion"]}}
    assert kubectl.fails("replace -f -", given=old).startswith("Error from server (Conflict): ")
    assert 'configmaps "b" not found' in kubectl.fails("replace -f -", given=config_map("b"))


def editor(tmp_path, script):
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{script} $1\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_edit(kubectl, lab, tmp_path):  # noqa: F811
    kubectl("create -f -", given=workload("Deployment", "web", replicas=0))
    assert kubectl.run("edit deploy web", KUBE_EDITOR="true") == ("", "Edit cancelled, no changes made.\n", 0)
    more = editor(tmp_path, "sed -i 's/replicas: 0/replicas: 1/'")
    assert kubectl("edit deploy web", KUBE_EDITOR=more) == "deployment.apps/web edited\n"
    assert stored(lab, kubectl, "web", "deployments.apps")["spec"]["replicas"] == 1
    wrong = editor(tmp_path, "sed -i 's/replicas: 1/replicas: -1/'")
    said = kubectl.fails("edit deploy web", KUBE_EDITOR=wrong, TMPDIR=str(tmp_path))
    assert said.startswith('error: deployments.apps "web" is invalid\n')
    kept = "".join(path.read_text() for path in tmp_path.glob("kubectl-edit-*.yaml"))
    assert "# * spec.replicas: Invalid value: -1: must be greater than or equal to 0" in kept


def test_label_and_annotate(kubectl, lab):  # noqa: F811
    kubectl("create -f -", given=items(config_map("a", labels={"set": "one"}), config_map("b", labels={"set": "one"})))
    assert kubectl("label cm a tier=back") == "configmap/a labeled\n"
    assert kubectl("label cm a tier=back") == "configmap/a not labeled\n"
    assert (
        kubectl.fails("label cm a tier=front") == "error: 'tier' already has a value (back), and --overwrite is false\n"
    )
    assert kubectl("label cm a tier=front --overwrite") == "configmap/a labeled\n"
    assert kubectl("label cm -l set=one more=yes") == "configmap/a labeled\nconfigmap/b labeled\n"
    assert {*kubectl("label cm a --list").split()} == {"more=yes", "set=one", "tier=front"}
    assert kubectl("label cm a tier-") == "configmap/a unlabeled\n"
    assert stored(lab, kubectl, "a")["metadata"]["labels"] == {"set": "one", "more": "yes"}
    assert kubectl.fails("label cm a tier=-bad-").startswith('error: invalid label value: "tier=-bad-"')
    assert kubectl("annotate cm a why='because of that'") == "configmap/a annotated\n"
    assert stored(lab, kubectl, "a")["metadata"]["annotations"] == {"why": "because of that"}
    assert kubectl("annotate cm a why-") == "configmap/a annotated\n"
    assert "Conflict" in kubectl.fails("annotate cm a x=y --resource-version=1")


def test_scale_and_autoscale(kubectl, lab):  # noqa: F811
    kubectl("create -f -", given=items(*(workload("ReplicaSet", name, replicas=0) for name in ("a", "b"))))
    assert kubectl("scale rs a --replicas=2") == "replicaset.apps/a scaled\n"
    assert stored(lab, kubectl, "a", "replicasets.apps")["spec"]["replicas"] == 2
    assert kubectl.fails("scale rs a --current-replicas=1 --replicas=3") == "error: Expected replicas to be 1, was 2\n"
    assert kubectl("scale --replicas=1 rs/a rs/b") == "replicaset.apps/a scaled\nreplicaset.apps/b scaled\n"
    kubectl.until("get pods -l app=b -o name", lambda said: said.count("pod/") == 1)
    kubectl("create -f -", given=config_map("a"))
    assert kubectl.fails("scale cm a --replicas=1") == (
        "Error from server (NotFound): the server could not find the requested resource\n"
    )
    kubectl("create deployment d --image=web:1 --replicas=0")
    assert (
        kubectl("autoscale deploy d --min=1 --max=3 --cpu=80%") == "horizontalpodautoscaler.autoscaling/d autoscaled\n"
    )
    assert rows(kubectl("get hpa"))[1][:5] == ["d", "Deployment/d", "cpu: <unknown>/80%", "1", "3"]


def test_set(kubectl, lab):  # noqa: F811
    kubectl("create deployment d --image=web:1 --replicas=0")
    assert kubectl("set image deploy/d web=web:2") == "deployment.apps/d image updated\n"
    assert kubectl("set env deploy/d COLOR=red") == "deployment.apps/d env updated\n"
    assert kubectl("set resources deploy/d --limits=cpu=1") == "deployment.apps/d resource requirements updated\n"
    [main] = stored(lab, kubectl, "d", "deployments.apps")["spec"]["template"]["spec"]["containers"]
    assert (main["image"], main["env"]) == ("web:2", [{"name": "COLOR", "value": "red"}])
    assert main["resources"] == {"limits": {"cpu": "1"}}


# -- delete and wait ---------------------------------------------------------------------------------------------------


def test_delete(kubectl, lab):  # noqa: F811
    there = f"from {kubectl.namespace} namespace"
    kubectl("create -f -", given=items(*(config_map(name, labels={"set": "one"}) for name in "abcd")))
    assert kubectl("delete cm a --dry-run=server") == f'configmap "a" deleted {there} (server dry run)\n'
    assert kubectl("delete cm a --dry-run=client") == f'configmap "a" deleted {there} (dry run)\n'
    assert stored(lab, kubectl, "a")
    assert kubectl("delete cm a") == f'configmap "a" deleted {there}\n'
    assert kubectl.fails("delete cm a") == 'Error from server (NotFound): configmaps "a" not found\n'
    assert kubectl("delete cm a --ignore-not-found") == ""
    assert kubectl("delete cm b -o name") == "configmap/b\n"
    assert kubectl("delete cm -l set=one") == f'configmap "c" deleted {there}\nconfigmap "d" deleted {there}\n'
    kubectl("create -f -", given=config_map("e"))
    assert kubectl("delete -f -", given=config_map("e")) == f'configmap "e" deleted {there}\n'


def test_delete_waits_for_finalizers(kubectl, lab):  # noqa: F811
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.org/held"]
    kubectl("create -f -", given=held)
    said = kubectl.run("delete cm held --timeout=4s")
    assert said.code == 1
    assert said.err.endswith("error: timed out waiting for the condition on configmaps/held\n")
    assert stored(lab, kubectl, "held")["metadata"]["deletionTimestamp"]
    assert kubectl("delete cm held --wait=false") == f'configmap "held" deleted from {kubectl.namespace} namespace\n'
    with kubectl.running("wait cm/held --for=delete --timeout=60s") as waiting:
        kubectl("patch cm held --type=merge -p", '{"metadata":{"finalizers":null}}')
        assert waiting.process.wait(60) == 0
        assert waiting.said in ("configmap/held condition met\n", "")


def test_delete_with_what_depends_on_it(kubectl, lab):  # noqa: F811
    for name in ("background", "foreground", "orphan"):
        kubectl("create -f -", given=workload("ReplicaSet", name, replicas=1, pod_spec={"nodeName": "n1"}))
        kubectl.until(f"get pods -l app={name} -o name", lambda said: "pod/" in said)
    kubectl("delete rs background")
    kubectl.until("get pods -l app=background -o name", lambda said: said == "")
    kubectl("delete rs foreground --cascade=foreground")
    assert kubectl("get pods -l app=foreground -o name") == ""
    kubectl("delete rs orphan --cascade=orphan")
    assert kubectl("get pods -l app=orphan -o name") != ""
    assert kubectl("get pods -l app=orphan -o jsonpath={.items[*].metadata.ownerReferences}") == ""


def test_delete_a_namespace_with_everything_in_it(kubectl, lab):  # noqa: F811
    kubectl("create namespace doomed")
    kubectl.until("get sa default -n doomed", lambda said: True)
    kubectl("create -f - -n doomed", given=config_map("a"))
    kubectl("create deployment d --image=web:1 --replicas=1 -n doomed")
    assert kubectl("delete namespace doomed --timeout=60s") == 'namespace "doomed" deleted\n'
    assert lab.stored("configmaps", "doomed", "a") is None
    assert lab.stored("namespaces", "", "doomed") is None
    said = kubectl.fails("create -f - -n doomed", given=config_map("a"))
    assert said == 'Error from server (NotFound): error when creating "STDIN": namespaces "doomed" not found\n'


def test_delete_pods(kubectl, lab):  # noqa: F811
    names = ("plain", "now", "short", "forced", "late")
    kubectl("create -f -", given=items(*(pod(name, labels={"ends": "late"}) for name in names)))
    kubectl.until("get pods", lambda said: said.count("Running") == len(names))
    said = kubectl.run("delete pod now --now")
    assert (said.out, said.err) == (f'pod "now" deleted from {kubectl.namespace} namespace\n', "")
    kubectl("delete pod short --grace-period=1")
    said = kubectl.run("delete pod forced --grace-period=0 --force")
    assert said.out == f'pod "forced" force deleted from {kubectl.namespace} namespace\n'
    assert said.err == (
        "Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. "
        "The resource may continue to run on the cluster indefinitely.\n"
    )
    kubectl("delete pod late --wait=false")
    assert rows(kubectl("get pod late"))[1][:3] == ["late", "1/1", "Terminating"]
    assert stored(lab, kubectl, "late", "pods")["metadata"]["deletionGracePeriodSeconds"] == 30
    kubectl("delete pod late --grace-period=1")
    assert kubectl("get pods -o name") == "pod/plain\n"


def test_wait(kubectl):  # noqa: F811
    kubectl("create -f -", given=items(pod("web"), pod("nowhere", node="", nodeSelector={"no": "such"})))
    assert kubectl("wait pod/web --for=condition=Ready --timeout=60s") == "pod/web condition met\n"
    assert kubectl("wait pod/web --for=jsonpath={.status.phase}=Running --timeout=60s") == "pod/web condition met\n"
    assert kubectl("wait pod/web --for=create --timeout=60s") == "pod/web condition met\n"
    said = kubectl.fails("wait pod/nowhere --for=condition=Ready --timeout=4s")
    assert said == "error: timed out waiting for the condition on pods/nowhere\n"
    said = kubectl.fails("wait pod/none --for=condition=Ready --timeout=4s")
    assert said == 'Error from server (NotFound): pods "none" not found\n'
    with kubectl.running("wait pod/web --for=delete --timeout=60s") as waiting:
        kubectl("delete pod web --now")
        assert waiting.process.wait(60) == 0
    with kubectl.running("wait cm/later --for=create --timeout=60s") as waiting:
        kubectl("create -f -", given=config_map("later"))
        assert waiting.process.wait(60) == 0
