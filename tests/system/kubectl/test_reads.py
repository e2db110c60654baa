"""What the unmodified kubectl shows of the lab: every way to get, describe, explain and ask."""

import json
import re
import urllib.request

import pytest
from support.kube.kubectl import config_map, items, kubectl, lab, pod, rows  # noqa: F401  (fixtures)

pytestmark = pytest.mark.timeout(180)


def maps(kubectl):  # noqa: F811
    a = config_map("a", labels={"app": "x", "tier": "back"}, color="red")
    b = config_map("b", labels={"app": "y"}, color="blue", size="1")
    kubectl("create -f -", given=items(a, b))


# -- get ---------------------------------------------------------------------------------------------------------------


def test_get_as_a_table(kubectl):  # noqa: F811
    maps(kubectl)
    assert [row[:2] for row in rows(kubectl("get configmaps -l app"))] == [["NAME", "DATA"], ["a", "1"], ["b", "2"]]
    assert kubectl("get cm -l app --no-headers").split()[0] == "a"
    assert kubectl.run("get pods") == ("", f"No resources found in {kubectl.namespace} namespace.\n", 0)


def test_get_wide(kubectl):  # noqa: F811
    kubectl("create -f -", given=pod("web"))
    kubectl.until("get pod web", lambda said: "Running" in said)
    heading, row = rows(kubectl("get pods -o wide"))
    assert heading == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert row[:4] == ["web", "1/1", "Running", "0"]
    assert row[6:] == ["n1", "<none>", "<none>"]
    assert row[5].startswith("127.64.")
    heading, row = rows(kubectl("get node n1 -o wide"))
    assert heading[5:] == ["INTERNAL-IP", "EXTERNAL-IP", "OS-IMAGE", "KERNEL-VERSION", "CONTAINER-RUNTIME"]
    assert row[:3] == ["n1", "Ready", "<none>"]


def test_get_as_json_yaml_and_names(kubectl):  # noqa: F811
    maps(kubectl)
    one = kubectl.json("get cm a")
    assert (one["kind"], one["apiVersion"], one["data"]) == ("ConfigMap", "v1", {"color": "red"})
    assert "managedFields" not in one["metadata"]
    assert kubectl.json("get cm a --show-managed-fields")["metadata"]["managedFields"][0]["manager"] == "kubectl-create"
    several = kubectl.json("get cm a b")
    assert (several["kind"], [item["metadata"]["name"] for item in several["items"]]) == ("List", ["a", "b"])
    assert kubectl("get cm b -o yaml").startswith(
        'apiVersion: v1\ndata:\n  color: blue\n  size: "1"\nkind: ConfigMap\n'
    )
    assert kubectl("get cm -l app=x -o name") == "configmap/a\n"


def test_get_with_templates(kubectl):  # noqa: F811
    maps(kubectl)
    assert kubectl("get cm b -o jsonpath={.data.color}/{.metadata.labels.app}") == "blue/y"
    assert (
        kubectl("get cm -l app -o jsonpath='{range .items[*]}{.metadata.name}={.data.color} {end}'") == "a=red b=blue "
    )
    assert kubectl("get cm -l app -o go-template='{{range .items}}{{.metadata.name}};{{end}}'") == "a;b;"
    columns = kubectl("get cm -l app -o custom-columns=NAME:.metadata.name,COLOR:.data.color,SIZE:.data.size")
    assert rows(columns) == [["NAME", "COLOR", "SIZE"], ["a", "red", "<none>"], ["b", "blue", "1"]]
    assert kubectl("get cm -l app --sort-by=.data.color -o name") == "configmap/b\nconfigmap/a\n"


def test_get_by_labels(kubectl):  # noqa: F811
    maps(kubectl)

    def names(selector):
        return kubectl("get cm -o name -l", selector).split()

    assert names("app=x") == ["configmap/a"]
    assert names("app!=x,app") == ["configmap/b"]
    assert names("app in (x, y),!tier") == ["configmap/b"]
    assert names("app=z") == []
    assert rows(kubectl("get cm -l app --show-labels"))[1][-1] == "app=x,tier=back"
    assert [row[-1] for row in rows(kubectl("get cm -l app -L app,tier"))] == ["TIER", "back", "y"]


def test_get_by_fields(kubectl):  # noqa: F811
    kubectl("create -f -", given=items(pod("here"), pod("nowhere", node="", nodeSelector={"no": "such"})))
    kubectl.until("get pod here", lambda said: "Running" in said)
    assert kubectl("get pods -o name --field-selector spec.nodeName=n1") == "pod/here\n"
    assert kubectl("get pods -o name --field-selector status.phase!=Running") == "pod/nowhere\n"
    assert kubectl("get pods -o name --field-selector metadata.name=here,status.phase=Running") == "pod/here\n"
    assert kubectl.fails("get deploy --field-selector spec.replicas=1") == (
        'Error from server (BadRequest): Unable to find "apps/v1, Resource=deployments" that match label selector "", '
        'field selector "spec.replicas=1": "spec.replicas" is not a known field selector: '
        'only "metadata.name", "metadata.namespace"\n'
    )


def test_get_in_all_namespaces(kubectl):  # noqa: F811
    maps(kubectl)
    table = rows(kubectl("get cm -A -l app=x"))
    assert table[0][:2] == ["NAMESPACE", "NAME"]
    assert [kubectl.namespace, "a"] in [row[:2] for row in table]


def test_get_several_kinds(kubectl):  # noqa: F811
    maps(kubectl)
    kubectl("create service clusterip web --tcp=80:8080")
    kubectl("create deployment web --image=web:1")
    said = kubectl("get cm,svc,deploy -l app")
    assert [word for word in said.split() if "/" in word][:4] == ["configmap/a", "configmap/b", "service/web", "80/TCP"]
    said = kubectl("get all")
    assert "service/web" in said
    assert "deployment.apps/web" in said
    assert "configmap" not in said


def test_get_what_is_not_there(kubectl):  # noqa: F811
    assert kubectl.fails("get pod none") == 'Error from server (NotFound): pods "none" not found\n'
    assert kubectl.fails("get deploy none") == 'Error from server (NotFound): deployments.apps "none" not found\n'
    assert kubectl.fails("get cars") == 'error: the server doesn\'t have a resource type "cars"\n'
    assert kubectl("get pod none --ignore-not-found") == ""
    assert kubectl.run("get pods -n nowhere").err == "No resources found in nowhere namespace.\n"


def test_get_in_pages(kubectl):  # noqa: F811
    kubectl("create -f -", given=items(*(config_map(f"m{number}", labels={"many": "yes"}) for number in range(7))))
    assert len(kubectl("get cm -l many --chunk-size=2 -o name").split()) == 7


def test_watch(kubectl):  # noqa: F811
    kubectl("create -f -", given=pod("first"))
    with kubectl.running("get pods --watch --output-watch-events") as watch:
        watch.until("first")
        kubectl("create -f -", given=pod("second"))
        watch.until("second", "Running")
        kubectl("delete pod first --now")
        said = watch.until("DELETED")
    events = [line.split()[:2] for line in said.splitlines()]
    assert events[0] == ["EVENT", "NAME"]
    assert events[1] == ["ADDED", "first"]
    assert ["ADDED", "second"] in events
    assert ["MODIFIED", "second"] in events
    assert events[-1] == ["DELETED", "first"]


def test_watch_ends_when_it_should(kubectl):  # noqa: F811
    maps(kubectl)
    said = kubectl.run("get cm b -w --request-timeout=5s")
    assert said.code == 0
    assert rows(said.out)[1][0] == "b"


def test_watch_of_one_name_and_only_what_changes(kubectl):  # noqa: F811
    maps(kubectl)
    with kubectl.running("get cm a --watch-only -o jsonpath='{.data.color};'") as watch:
        end = 0
        while "green" not in watch.said:  # the watch may begin later than the first change
            end += 1
            kubectl("patch cm b --type=merge -p", json.dumps({"data": {"color": f"x{end}"}}))
            kubectl("patch cm a --type=merge -p", json.dumps({"data": {"color": f"green{end}"}}))
            assert end < 50
        assert "red" not in watch.said
        assert "x" not in watch.said


# -- about the server --------------------------------------------------------------------------------------------------


def test_explain(kubectl):  # noqa: F811
    said = kubectl("explain pod.spec.terminationGracePeriodSeconds")
    assert said.startswith("KIND:       Pod\nVERSION:    v1\n\nFIELD: terminationGracePeriodSeconds <integer>\n")
    assert "FIELDS:" in kubectl("explain deployments")
    assert "        maxSurge\t<IntOrString>" in kubectl("explain deploy --recursive")
    assert kubectl.fails("explain pod.spec.nothing") == 'error: field "nothing" does not exist\n'
    assert kubectl.fails("explain cars") == 'the server doesn\'t have a resource type "cars"\n'


def test_api_resources_and_versions(kubectl):  # noqa: F811
    table = rows(kubectl("api-resources --no-headers"))
    named = {row[0]: row for row in table}
    assert named["pods"] == ["pods", "po", "v1", "true", "Pod"]
    assert named["nodes"] == ["nodes", "no", "v1", "false", "Node"]
    assert named["poddisruptionbudgets"] == ["poddisruptionbudgets", "pdb", "policy/v1", "true", "PodDisruptionBudget"]
    assert "namespaces" in kubectl("api-resources --namespaced=false -o name").split()
    assert "pods" not in kubectl("api-resources --namespaced=false -o name").split()
    assert "deployments.apps" in kubectl("api-resources --verbs=list,watch --categories=all -o name").split()
    assert "create,delete,deletecollection,get,list,patch,update,watch" in kubectl("api-resources -o wide")
    assert {"v1", "apps/v1", "policy/v1", "coordination.k8s.io/v1"} <= {*kubectl("api-versions").split()}


def test_version_and_cluster_info(kubectl, lab):  # noqa: F811
    assert re.search(r"^Server Version: v1\.36\.2", kubectl("version"), re.MULTILINE)
    assert json.loads(kubectl("version -o json"))["serverVersion"]["minor"] == "36"
    assert f"Kubernetes control plane is running at {lab.plane.url}" in kubectl("cluster-info")


def test_get_raw(kubectl):  # noqa: F811
    assert kubectl("get --raw /healthz") == "ok"
    assert json.loads(kubectl("get --raw /api/v1/namespaces/default"))["metadata"]["name"] == "default"
    assert kubectl.fails("get --raw /nowhere").startswith("Error from server (NotFound): ")
    made = json.dumps(config_map("raw"))
    assert json.loads(kubectl(f"create --raw /api/v1/namespaces/{kubectl.namespace}/configmaps -f -", given=made))
    assert kubectl("get cm raw -o name") == "configmap/raw\n"


def test_who_am_i_and_what_may_i(kubectl):  # noqa: F811
    assert rows(kubectl("auth whoami")) == [
        ["ATTRIBUTE", "VALUE"],
        ["Username", "lab-admin"],
        ["Groups", "[system:masters system:authenticated]"],
    ]
    assert kubectl("auth can-i delete pods") == "yes\n"
    assert kubectl("auth can-i get nodes/proxy") == "yes\n"
    assert "[*]" in kubectl("auth can-i --list")


def test_impersonation(kubectl, lab):  # noqa: F811
    said = kubectl("auth whoami --as=jane --as-group=readers --as-group=writers")
    assert "jane" in said
    assert "[readers writers system:authenticated]" in said
    refused = kubectl.fails("create cm mine --as=jane")
    assert (
        f'User "jane" cannot create resource "configmaps" in API group "" in the namespace "{kubectl.namespace}"'
        in refused
    )
    kubectl("create rolebinding jane --clusterrole=edit --user=jane")
    kubectl("create cm mine --as=jane")
    [record] = [
        one
        for one in lab.plane.server.audit.records
        if one.user == "jane" and one.verb == "create" and one.resource == "configmaps" and one.code == 201
    ]
    assert (record.user, record.verb, record.resource) == ("jane", "create", "configmaps")
    refused = kubectl.fails("get pods --as=joe")
    assert refused.startswith('Error from server (Forbidden): pods is forbidden: User "joe" cannot list')


def test_a_wrong_token_is_refused(kubectl):  # noqa: F811
    assert kubectl.fails("get pods --token=wrong").startswith(
        "error: You must be logged in to the server (Unauthorized)"
    )


def test_a_service_accounts_token(kubectl):  # noqa: F811
    token = kubectl("create token default").strip()
    said = kubectl("auth whoami --token", token)
    assert f"system:serviceaccount:{kubectl.namespace}:default" in said


def test_an_unknown_authority_is_not_trusted(kubectl, lab):  # noqa: F811
    said = kubectl.fails(f"get pods --kubeconfig=/dev/null --server={lab.plane.url} --token=x")
    assert "certificate signed by unknown authority" in said


def test_top_says_that_there_are_no_metrics(kubectl):  # noqa: F811
    assert kubectl.fails("top node") == "error: Metrics API not available\n"
    assert kubectl.fails("top pod") == "error: Metrics API not available\n"


def test_proxy(kubectl):  # noqa: F811
    with kubectl.running("proxy --port=0") as proxy:
        address = re.search(r"127\.0\.0\.1:\d+", proxy.until("Starting to serve on 127.0.0.1:"))[0]
        with urllib.request.urlopen(f"http://{address}/api/v1/nodes/n1", timeout=60) as answer:
            assert json.load(answer)["kind"] == "Node"
