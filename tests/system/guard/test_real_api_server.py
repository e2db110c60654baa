"""The guard in front of a real kube-apiserver: its webhooks, conditions and policies are accepted, and behave.

ETCD and KUBE_APISERVER name the programs; without them PATH is searched.
"""

import json
import shutil
import socket
import tempfile
from pathlib import Path

import pytest
from support.guard.real_guard import SHOP, RealGuard
from support.kube import real_api_server

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("real-api-server"),
    pytest.mark.skipif(bool(real_api_server.why_not()), reason=real_api_server.why_not()),
]


def free_ports():
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture(scope="module")
def cluster():
    directory = Path(tempfile.mkdtemp(prefix="lc-"))
    try:
        with RealGuard(directory, ports=free_ports()) as made:
            yield made
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def test_every_webhook_is_accepted_as_it_was_applied(cluster):
    """What the guard writes into them apart."""
    found = cluster.anywhere.json("get validatingwebhookconfigurations,mutatingwebhookconfigurations")["items"]
    hooks = {one["name"]: one for found_one in found for one in found_one["webhooks"]}
    assert {name: (one["failurePolicy"], len(one["matchConditions"])) for name, one in hooks.items()} == {
        "delete.guard.lastcall.dev": ("Fail", 2),
        "evict.guard.lastcall.dev": ("Fail", 1),
        "uninstall.guard.lastcall.dev": ("Ignore", 1),
        "settle.pods.lastcall.dev": ("Ignore", 1),
    }
    assert all(one["clientConfig"]["caBundle"] for one in hooks.values())
    cluster.anywhere("get mutatingadmissionpolicies lastcall-guard-responder")


def test_kubectl_delete_is_answered_429_until_the_application_is_ready(cluster):
    cluster.application.is_ready = False
    name = cluster.make_pod("delete-0")
    said = cluster.hold(name)
    assert said.startswith('Error from server (TooManyRequests): admission webhook "delete.guard.lastcall.dev" denied')
    cluster.wait(lambda: (cluster.entry(name) or {}).get("message") == "moves its jobs", "progress")
    assert "moves its jobs (since " in cluster.hold(name)
    cluster.application.is_ready = True
    cluster.wait_for_state(name, "Ready")
    cluster.kubectl(f"delete pod {name} --grace-period=0 --force")
    assert not cluster.exists(name)


def test_kubectl_drain_asks_again_and_goes_on(cluster):
    cluster.application.is_ready = False
    name = cluster.make_pod("drain-0")
    line = "drain bench --force --ignore-daemonsets"
    try:
        said = cluster.anywhere.fails(f"{line} --timeout=8s")
        assert f'error when evicting pods/"{name}" -n "{SHOP}" (will retry after 5s)' in said, said
        assert 'admission webhook "evict.guard.lastcall.dev" denied the request' in said
        cluster.application.is_ready = True
        cluster.wait_for_state(name, "Ready")
        with cluster.removing_terminating_pods():
            assert "node/bench drained" in cluster.anywhere(f"{line} --timeout=60s")
        assert not cluster.exists(name)
    finally:
        cluster.anywhere("uncordon bench")


def not_shown(cluster, act):
    """What ``act`` returns; the guard is shown no review meanwhile."""
    before = cluster.count_reviews()
    found = act()
    assert cluster.count_reviews() == before
    return found


def test_what_the_conditions_leave_out_never_reaches_the_guard(cluster):
    cluster.application.is_ready = False
    kubelet = cluster.kubectl.__class__(cluster.server.kubeconfig("kubelet"), cluster.directory, namespace=SHOP)
    for name in ("by-kubelet", "terminating"):
        cluster.make_pod(name)
        before = cluster.count_reviews()
        cluster.hold(name)
        assert cluster.count_reviews() > before, "it is guarded"
    path = f"/api/v1/namespaces/{SHOP}/pods/by-kubelet"
    not_shown(cluster, lambda: kubelet(f"delete --raw {path} -f -", given={"gracePeriodSeconds": 0}))
    assert not cluster.exists("by-kubelet")

    cluster.kubectl("annotate pod terminating lastcall.dev/guard-bypass-until=2999-01-01T00:00:00Z")
    cluster.kubectl("delete pod terminating --wait=false")
    assert cluster.exists("terminating"), "no kubelet ends it"
    cluster.kubectl("annotate pod terminating lastcall.dev/guard-bypass-until-")
    not_shown(cluster, lambda: cluster.kubectl("delete pod terminating --grace-period=0 --force"))
    assert not cluster.exists("terminating")

    for phase in ("Succeeded", "Failed"):
        name = cluster.make_pod(f"ended-{phase.lower()}", phase=phase)
        not_shown(cluster, lambda name=name: cluster.kubectl(f"delete pod {name} --grace-period=0 --force"))
        assert not cluster.exists(name)

    cluster.make_pod("elsewhere", namespace="open")
    not_shown(cluster, lambda: cluster.anywhere("delete pod elsewhere -n open --grace-period=0 --force"))


def test_the_policy_of_providers_is_accepted_and_behaves(cluster):
    """Who writes a GuardPolicy needs what it has the guard do."""
    role = "--verb=create,update,patch,get --resource=guardpolicies.lastcall.dev"
    cluster.kubectl(f"create role policies {role}")
    cluster.kubectl("create rolebinding policies --role=policies --user=dev")

    def write(provider):
        policy = {"apiVersion": "lastcall.dev/v1alpha1", "kind": "GuardPolicy", "metadata": {"name": "own"}}
        given = policy | {"spec": {"provider": provider, "selector": {"matchLabels": {"app": "own"}}}}
        return cluster.kubectl.run("apply --dry-run=server --as=dev -f -", given=given)

    secret = {"http": {"port": 80, "reversible": True, "scheme": "https", "caSecret": {"name": "ca"}}}
    runs = {"rabbitmq": {}}
    assert write({"http": {"port": 80, "reversible": True}}).code == 0
    assert "must have the right to create pods/exec" in write(runs).err
    assert "must have the right to get it in this namespace" in write(secret).err
    cluster.kubectl("create role more --verb=get --resource=secrets --resource-name=ca")
    cluster.kubectl("create rolebinding more --role=more --user=dev")
    cluster.wait(lambda: write(secret).code == 0, "permission")
    assert write(runs).code != 0


def test_new_pods_get_their_sleep_by_the_webhook(cluster):
    cluster.anywhere(f"label namespace {SHOP} lastcall.dev/settle-seconds=3")
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    cluster.kubectl("create -f -", given=service | {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})
    name = cluster.make_pod("web-0", labels={"app": "web"})
    [container] = cluster.kubectl.json(f"get pod {name}")["spec"]["containers"]
    assert container["lifecycle"]["preStop"] == {"sleep": {"seconds": 3}}
    cluster.kubectl(f"delete pod {name} --grace-period=0 --force")


def test_an_uninstallation_undoes_and_ends_all_holds(cluster):
    """The last test: nothing is held afterwards."""
    cluster.application.is_ready = False
    name = cluster.make_pod("uninstalled-0")
    cluster.hold(name)
    cluster.wait(lambda: "prepare" in cluster.application.calls, "preparation")
    cluster.wait(lambda: (cluster.entry(name) or {}).get("preparedAt"), "record")
    cluster.anywhere("create configmap lastcall-guard-uninstall -n lastcall-system")
    assert cluster.entry(name)["state"] == "Released"
    assert "cancel" in cluster.application.calls
    found = cluster.anywhere.json("get validatingwebhookconfiguration lastcall-guard")
    assert not found.get("webhooks"), json.dumps(found)
    cluster.kubectl(f"delete pod {name} --grace-period=0 --force")
