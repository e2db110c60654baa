"""In which order the pods of a drain go."""

import pytest
from support.drain.objects import owned

from lastcall.drain.planning.tiers import arrange_tiers
from lastcall.model.node_pods import DnsService

CRITICAL = 2_000_000_000


def tiers(*pods, dns=()):
    return [[pod.metadata.name for pod in tier] for tier in arrange_tiers(pods, dns)]


def test_no_pods_have_no_tiers():
    assert tiers() == []


def test_workloads_go_by_priority_and_in_a_tier_by_namespace_and_name():
    pods = [
        owned("z", namespace="a"),
        owned("high", priority=1000),
        owned("low", priority=-5),
        owned("b", namespace="b"),
        owned("a", namespace="b"),
        owned("none", namespace="c", priority=None),
    ]
    assert tiers(*pods) == [["low"], ["z", "a", "b", "none"], ["high"]]


def test_what_workloads_depend_on_goes_after_the_highest_of_them():
    pods = [
        owned("critical", priority=CRITICAL),
        owned("most-critical", priority=CRITICAL + 1000),
        owned("dns", labels={"k8s-app": "kube-dns"}),
        owned("csi", image="registry.k8s.io/sig-storage/csi-provisioner:v5.0.1", priority=10),
        owned("work", priority=CRITICAL - 1),
    ]
    assert tiers(*pods) == [["work"], ["dns"], ["csi"], ["critical"], ["most-critical"]]


def test_dns_is_what_its_service_selects():
    pods = [owned("a", namespace="kube-system", labels={"app": "dns", "x": "y"}), owned("b", labels={"app": "dns"})]
    service = DnsService(namespace="kube-system", selector={"app": "dns"})
    assert tiers(*pods, dns=[service]) == [["b"], ["a"]]


def test_the_class_counts_if_the_priority_is_missing():
    class_ = {"priorityClassName": "system-cluster-critical"}
    assert tiers(owned("a", priority=None, spec=class_), owned("b", priority=5)) == [["b"], ["a"]]


@pytest.mark.parametrize(
    "image",
    [
        "registry.k8s.io/sig-storage/csi-provisioner:v5.0.1",
        "registry.k8s.io/sig-storage/csi-attacher@sha256:0123",
        "csi-resizer",
        "quay.io/k8scsi/csi-snapshotter:v2",
        "localhost:5000/csi-snapshotter",
        "public.ecr.aws/eks-distro/kubernetes-csi/external-provisioner:v5",
        "registry.redhat.io/openshift4/ose-csi-external-attacher-rhel9:v4",
    ],
)
def test_a_csi_controller_is_known_by_its_sidecars(image):
    assert tiers(owned("a", image=image), owned("b", priority=7)) == [["b"], ["a"]]


@pytest.mark.parametrize(
    "image",
    ["csi-node-driver-registrar:v2", "livenessprobe", "attacher", "x/csi-provisioner/web:1", "snapshot-controller:v8"],
)
def test_other_images_are_workloads(image):
    assert tiers(owned("a", image=image), owned("b", priority=7)) == [["a"], ["b"]]
