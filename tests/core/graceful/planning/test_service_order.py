"""Which pods of a phase end after others."""

import pytest
from msgspec.structs import replace

from lastcall.graceful.planning.service_order import is_labelled_dns, is_network_plugin, needs
from lastcall.graceful.planning.time_windows import TerminationWindow
from lastcall.model.own_pods import keep_essentials
from lastcall.model.pods import HostPath, ObjectMetadata, OwnerReference, Pod, PodSpec, Volume

DAEMON_SET = (OwnerReference(kind="DaemonSet", name="ds", controller=True),)
CNI = ("/etc/cni/net.d", "/opt/cni/bin")


def pod(name="web", *, paths=(), app="", labels=None, owners=(), **spec):
    volumes = tuple(Volume(name=f"v{at}", host_path=HostPath(path=path)) for at, path in enumerate(paths))
    labels = {**({"k8s-app": app} if app else {}), **(labels or {})}
    metadata = ObjectMetadata(name=name, namespace="kube-system", uid=name, labels=labels, owner_references=owners)
    return keep_essentials(Pod(metadata=metadata, spec=PodSpec(volumes=volumes, **spec)))


NETWORK = pod("cni", paths=CNI, owners=DAEMON_SET, host_network=True)
CORE_DNS = pod("coredns", app="kube-dns", dns_policy="Default")
CACHE = pod("cache", app="node-local-dns", owners=DAEMON_SET, host_network=True, dns_policy="Default")
DRIVER = pod("csi", paths=("/var/lib/kubelet/plugins/x",), owners=DAEMON_SET)


@pytest.mark.parametrize(
    ("one", "is_one"),
    [
        (NETWORK, True),
        (pod(paths=("/opt/cni/bin/",), owners=DAEMON_SET, host_network=True), True),
        (pod(paths=("/var/lib/rancher/k3s/agent/etc/cni/net.d",), owners=DAEMON_SET, host_network=True), True),
        (pod(paths=CNI, owners=DAEMON_SET), False),
        (pod(paths=CNI, host_network=True), False),
        (pod(paths=("/var/log/cni/x", "/proc"), owners=DAEMON_SET, host_network=True), False),
        (DRIVER, False),
        (CORE_DNS, False),
    ],
)
def test_a_network_plugin_is_a_daemon_sets_in_the_hosts_network_with_the_directories_of_cni(one, is_one):
    assert is_network_plugin(one) is is_one


@pytest.mark.parametrize(
    ("one", "is_one"),
    [
        (CORE_DNS, True),
        (CACHE, True),
        (pod(app="nodelocaldns"), True),
        (pod(labels={"dns.operator.openshift.io/daemonset-dns": "default"}), True),
        (pod(app="web"), False),
        (pod(labels={"app": "kube-dns"}), False),
    ],
)
def test_dns_is_known_by_its_labels(one, is_one):
    assert is_labelled_dns(one) is is_one


@pytest.mark.parametrize(
    ("user", "of_network", "of_dns"),
    [
        (pod(), True, True),
        (pod(dns_policy="Default"), True, False),
        (pod(dns_policy="None"), True, False),
        (pod(host_network=True), False, False),
        (pod(host_network=True, dns_policy="ClusterFirstWithHostNet"), False, True),
        (DRIVER, True, False),
        (replace(CORE_DNS, spec=replace(CORE_DNS.spec, dns_policy="ClusterFirst")), True, False),
        (CACHE, False, False),
        (NETWORK, False, False),
    ],
)
def test_who_needs_whom(user, of_network, of_dns):
    assert needs(user, NETWORK) is of_network
    assert (needs(user, CORE_DNS), needs(user, CACHE)) == (of_dns, of_dns)
    assert not needs(user, pod())
    assert not needs(NETWORK, user)
    assert not needs(CACHE, user)


@pytest.mark.parametrize(
    ("started", "last_kill", "asked", "until"),
    [
        (0, 40, 10, 30),
        (0, 40, 0, 38),  # SIGKILL never follows SIGTERM at once
        (0, 40, 30, 20),  # half of its time is its own
        (0, 40, None, 20),
        (100, 103, 0, 101.5),
    ],
)
def test_how_long_a_service_may_wait_for_its_users(started, last_kill, asked, until):
    window = TerminationWindow(started=started, grace=40, last_kill=last_kill)
    assert window.service_deadline(asked) == until
