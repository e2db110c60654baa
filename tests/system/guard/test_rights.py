"""The guard lends its rights to nobody: who writes a GuardPolicy needs what it has the guard do. By the real kubectl."""

import json
import ssl
import time
import urllib.request
from urllib.parse import urljoin

import pytest
from support.guard.reviews import deletion
from support.kube.kubectl import ask_kubectl
from support.lab.up_process import LabProcess

POLICY = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "db"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "any"}]},
}
pytestmark = pytest.mark.timeout(270)


class Shop:
    """A lab with a guard, and a developer who may write GuardPolicies in ``default``."""

    def __init__(self, directory):
        self.lab = LabProcess(directory, "--guard")
        self.lab.start()
        end = time.monotonic() + 60
        while "lastcall-guard" not in self("get validatingwebhookconfigurations -o name"):
            assert time.monotonic() < end
            time.sleep(0.2)
        self.permit("policies", "--verb=create,update,patch,get --resource=guardpolicies.lastcall.dev")

    def __call__(self, line, obj=None):
        return ask_kubectl(self.lab.kubeconfig, line, obj)

    def permit(self, name, what):
        self(f"create role {name} {what}")
        self(f"create rolebinding {name} --role={name} --user=dev")

    def write(self, provider, name="p"):
        policy = {
            "apiVersion": "lastcall.dev/v1alpha1",
            "kind": "GuardPolicy",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"provider": provider},
        }
        return self("create --as=dev -f -", policy)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    made = Shop(tmp_path_factory.mktemp("lab"))
    yield made
    made.lab.end()


def test_only_the_api_server_has_a_preparation_begun(shop):
    """Another caller is answered, and starts nothing: a preparation may not be reversible."""
    assert "labeled" in shop("label namespace default lastcall.dev/guard-enabled=true")
    assert "created" in shop("create -f -", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    policy = {"selector": {"matchLabels": {"app": "db"}}, "provider": {"redis": {}}}
    said = shop("create -f -", {**POLICY, "spec": policy})
    assert "created" in said
    said = shop("create -f -", {**POD, "metadata": {"name": "db", "labels": {"app": "db"}}})
    assert "created" in said
    pod = json.loads(shop("get pod db -o json"))
    hooks = json.loads(shop("get validatingwebhookconfiguration lastcall-guard -o json"))["webhooks"]
    url = next(hook["clientConfig"]["url"] for hook in hooks if hook["rules"][0]["operations"] == ["DELETE"])
    assert "/review/" in url
    for path in ("/uninstall", "/uninstall/wrong"):
        assert ask(urljoin(url, path), deletion(pod))["allowed"]
        assert json.loads(shop("get validatingwebhookconfiguration lastcall-guard -o json"))["webhooks"] == hooks
    for path in ("/review", "/review/", "/review/wrong"):
        answer = ask(urljoin(url, path), deletion(pod), authorization="Bearer of-a-pod")
        assert (answer["allowed"], answer["status"]["code"]) == (False, 429)
        assert not json.loads(shop("get guardpolicy db -o json")).get("status", {}).get("pods")
    assert not ask(url, deletion(pod), authorization="Bearer of-nobody")["allowed"], "no token is looked at"
    [held] = json.loads(shop("get guardpolicy db -o json"))["status"]["pods"]
    assert held["name"] == "db"


def test_new_pods_are_prepared_for_the_api_server_alone(shop):
    """By the webhook ``lastcall-settle``: the Service's port is declared by nobody."""
    assert "created" in shop("create namespace web")
    assert "labeled" in shop("label namespace web lastcall.dev/settle-seconds=3")
    assert "created" in shop("create service clusterip web --tcp=80 -n web")
    pod = {**POD, "metadata": {"name": "web", "labels": {"app": "web"}}}

    def created():
        """Until the guard has told the API server its path and authority, pods stay as they are."""
        found = json.loads(shop("create --dry-run=server -n web -o json -f -", pod))
        return found["spec"]["containers"][0].get("lifecycle")

    end = time.monotonic() + 60
    while not created():
        assert time.monotonic() < end
        time.sleep(0.2)
    assert created() == {"preStop": {"sleep": {"seconds": 3}}}
    [hook] = json.loads(shop("get mutatingwebhookconfiguration lastcall-settle -o json"))["webhooks"]
    url = hook["clientConfig"]["url"]
    for path, prepares in ((url, True), ("/settle", False), ("/settle/wrong", False)):
        assert ("patch" in ask(urljoin(url, path), creation(pod))) is prepares


def creation(pod):
    resource = {"group": "", "version": "v1", "resource": "pods"}
    request = {"uid": "u", "operation": "CREATE", "resource": resource, "namespace": "web", "object": pod}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def ask(url, review, **headers):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(review).encode(), headers, method="POST")  # noqa: S310 - https
    with urllib.request.urlopen(request, context=context, timeout=20) as answer:  # noqa: S310 - the same
        return json.load(answer)["response"]


def test_commands_only_from_who_may_run_commands(shop):
    for provider in ({"exec": {"prepare": ["true"]}}, {"rabbitmq": {}}):
        said = shop.write(provider, "commands")
        assert "forbidden" in said
        assert "must have the right to create pods/exec" in said
    shop.permit("exec", "--verb=create --resource=pods/exec")
    assert "created" in shop.write({"exec": {"prepare": ["true"]}}, "commands")


def test_a_secret_only_from_who_may_read_it(shop):
    redis = {"redis": {"passwordSecret": {"name": "auth"}}}
    said = shop.write(redis, "secret")
    assert "whoever names a Secret must have the right to get it" in said
    shop.permit("other", "--verb=get --resource=secrets --resource-name=other")
    assert "whoever names a Secret" in shop.write(redis, "secret")
    sentinel = {"masterName": "shop", "passwordSecret": {"name": "other"}, "sentinelPasswordSecret": {"name": "auth"}}
    assert "whoever names a Secret" in shop.write({"redis-sentinel": sentinel}, "sentinel")
    shop.permit("auth", "--verb=get --resource=secrets --resource-name=auth")
    assert "created" in shop.write(redis, "secret")
    assert "created" in shop.write({"redis-sentinel": sentinel}, "sentinel")


@pytest.mark.parametrize("value", ["auth", ["auth"], None, 7])
def test_a_secret_that_is_no_mapping_is_admitted_and_the_condition_says_so(shop, value):
    """No Secret is named, so none is read; CEL's own error would tell nobody what is wrong."""
    name = f"no-mapping-{type(value).__name__.lower()}"
    assert "created" in shop.write({"redis": {"passwordSecret": value}}, name)


def test_a_provider_that_needs_no_rights_is_for_everybody(shop):
    assert "created" in shop.write({"redis": {"port": 6379}}, "plain")
