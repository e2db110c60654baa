"""Which pods end before the pods that need them, and what mends it."""

import pytest

from lastcall.graceful.config import AgentConfig
from lastcall.graceful.planning import inversions, node_checks
from lastcall.graceful.planning.node_services import ServiceKind, find_services
from lastcall.model.node_pods import DnsService, NodePods, PriorityClass
from lastcall.model.pods import (
    Container,
    EphemeralSource,
    HostPath,
    InlineCsiSource,
    ObjectMetadata,
    OwnerReference,
    PersistentClaimSource,
    Pod,
    PodSpec,
    PodStatus,
    Volume,
)
from lastcall.model.shutdown import PhasePlan

CRITICAL, NODE_CRITICAL = 2_000_000_000, 2_000_001_000
TWO = (PhasePlan(priority=0, seconds=60), PhasePlan(priority=CRITICAL, seconds=30))
DAEMON_SET = (OwnerReference(kind="DaemonSet", name="ds", controller=True),)
KUBE_DNS = DnsService(namespace="shop", selector={"k8s-app": "kube-dns"})
DB = {"claim": "data"}


def pod(name, priority=0, *, paths=(), args=(), claim="", labels=None, owners=DAEMON_SET, phase="Running", **spec):
    volumes = [Volume(name=f"v{at}", host_path=HostPath(path=path)) for at, path in enumerate(paths)]
    if claim:
        volumes.append(Volume(name="data", persistent_volume_claim=PersistentClaimSource(claim_name=claim)))
    return Pod(
        metadata=ObjectMetadata(name=name, namespace="shop", labels=labels, owner_references=owners),
        spec=PodSpec(
            **{
                "node_name": "n1",
                "priority": priority,
                "containers": (Container(name="c", args=tuple(args)),),
                "volumes": tuple(volumes),
                "termination_grace_period_seconds": 30,
                **spec,
            }
        ),
        status=PodStatus(phase=phase),
    )


def driver(priority=0, **spec):
    return pod("csi", priority, paths=("/var/lib/kubelet/plugins/ebs.csi.aws.com",), host_network=True, **spec)


def network(priority=0):
    return pod("cni", priority, paths=("/etc/cni/net.d", "/opt/cni/bin"), host_network=True)


def dns(priority=0):
    return pod("dns", priority, labels={"k8s-app": "kube-dns", "pod-template-hash": "x"})


def node(*pods, classes=(), dns=(KUBE_DNS,)):
    return NodePods(
        pods=pods,
        classes=classes,
        drivers=("ebs.csi.aws.com", "other"),
        claim_drivers={"shop/data": "ebs.csi.aws.com", "shop/eph-data": "ebs.csi.aws.com", "shop/nfs": "other"},
        dns=dns,
    )


def find(*pods, groups=TWO, **more):
    config = AgentConfig(kind="AgentConfiguration", groups=groups)
    return node_checks.check_node(config, node(*pods, **more), "n1", float("inf")).inversions


def pairs(found):
    return [(one.service.pod.metadata.name, [user.metadata.name for user in one.users]) for one in found]


@pytest.mark.parametrize("service", [driver, network, dns])
def test_one_that_ends_in_an_earlier_phase_than_its_user(service):
    user = pod("db", CRITICAL, claim="data")
    assert pairs(find(service(), user)) == [(service().metadata.name, ["db"])]
    assert (
        find(service(NODE_CRITICAL), user.__class__(metadata=user.metadata, spec=pod("db", 0, claim="data").spec)) == ()
    )


@pytest.mark.parametrize("service", [network, dns])
def test_the_same_phase_is_none_for_network_and_dns(service):
    assert find(service(), pod("db")) == ()


def test_a_driver_outlives_a_user_of_its_phase_only_if_it_has_more_time():
    user = pod("db", claim="data")
    assert pairs(find(driver(), user)) == [("csi", ["db"])]
    assert find(driver(termination_grace_period_seconds=32), user) == ()
    assert pairs(find(driver(termination_grace_period_seconds=31), user)) == [("csi", ["db"])]


@pytest.mark.parametrize(
    ("user", "counts"),
    [
        (pod("eph", CRITICAL, volumes=(Volume(name="data", ephemeral=EphemeralSource()),)), True),
        (pod("a", CRITICAL, volumes=(Volume(name="x", csi=InlineCsiSource(driver="ebs.csi.aws.com")),)), True),
        (pod("a", CRITICAL, claim="nfs"), False),
        (pod("a", CRITICAL, claim="unknown"), False),
        (pod("a", CRITICAL), False),
        (pod("a", CRITICAL, claim="data", phase="Succeeded"), False),
    ],
)
def test_users_of_a_driver(user, counts):
    assert bool(find(driver(), user)) is counts


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"host_network": True}, False),
        ({"dns_policy": "Default"}, False),
        ({"dns_policy": "None"}, False),
        ({"host_network": True, "dns_policy": "ClusterFirstWithHostNet"}, True),
        ({}, True),
    ],
)
def test_users_of_dns(spec, counts):
    assert bool(find(dns(), pod("a", CRITICAL, **spec))) is counts


def test_users_of_the_network_are_those_without_the_hosts():
    assert pairs(find(network(), pod("a", CRITICAL, host_network=True), pod("b", CRITICAL))) == [("cni", ["b"])]


@pytest.mark.parametrize(
    ("one", "kinds"),
    [
        (driver(), [ServiceKind.CSI]),
        (
            pod("a", paths=("/var/lib/kubelet/plugins_registry",), args=("--reg=/d/plugins/other/csi.sock",)),
            [ServiceKind.CSI],
        ),
        (pod("a", paths=("/var/lib/kubelet/plugins/ebs.csi.aws.com.cn",)), []),
        (pod("a", args=("--reg=/d/plugins/other/csi.sock",)), []),
        (network(), [ServiceKind.CNI]),
        (pod("a", paths=("/opt/cni/bin",)), []),
        (pod("a", paths=("/opt/cni/bin",), host_network=True, owners=()), []),
        (dns(), [ServiceKind.DNS]),
        (pod("a", labels={"k8s-app": "node-local-dns"}), [ServiceKind.DNS]),
        (pod("a", labels={"k8s-app": "web"}), []),
    ],
)
def test_how_they_are_recognised(one, kinds):
    assert [found.kind for found in find_services(node(one))] == kinds


def test_a_service_without_selector_has_no_pods():
    assert find_services(node(pod("a"), dns=(DnsService(namespace="shop", selector={}),))) == ()


# -- the mend ----------------------------------------------------------------------------------------------------------


def mend(*pods, **more):
    (found,) = find(*pods, **more)
    return found.mend


def test_the_standard_class_of_the_kind_is_preferred():
    classes = (PriorityClass(name="a", value=CRITICAL),)
    assert mend(driver(), pod("db", claim="data"), classes=classes).priority_class == "system-node-critical"
    three = (PhasePlan(priority=0, seconds=30), PhasePlan(priority=1000, seconds=30), TWO[1])
    assert mend(dns(), pod("db", 1000), groups=three).priority_class == "system-cluster-critical"


def test_a_class_that_lies_in_the_users_phase_mends_nothing():
    three = (*TWO, PhasePlan(priority=NODE_CRITICAL, seconds=10))
    assert mend(dns(), pod("db", CRITICAL), groups=three).priority_class == "system-node-critical"


def test_a_new_phase_takes_its_time_from_the_one_it_is_cut_out_of():
    found = mend(driver(NODE_CRITICAL), pod("db", CRITICAL, claim="data"))
    assert found.priority_class == ""
    assert found.periods == (
        TWO[0],
        PhasePlan(priority=CRITICAL, seconds=20),
        PhasePlan(priority=NODE_CRITICAL, seconds=10),
    )


def test_a_class_and_a_new_phase():
    found = mend(driver(0), pod("db", CRITICAL, claim="data"))
    assert (found.priority_class, found.periods[-1].priority) == ("system-node-critical", NODE_CRITICAL)


def test_a_new_phase_above_the_lowest_one_with_pods_below_it():
    one = (PhasePlan(priority=0, seconds=30),)
    found = mend(driver(0), pod("db", -5, claim="data"), groups=one)
    assert found.periods == (PhasePlan(priority=-1, seconds=20), PhasePlan(priority=0, seconds=10))


@pytest.mark.parametrize(("priority", "seconds"), [(NODE_CRITICAL, 30), (CRITICAL, 2)])
def test_without_a_place_behind_them_the_users_have_to_go_down(priority, seconds):
    groups = (PhasePlan(priority=0, seconds=seconds),)
    (found,) = find(driver(NODE_CRITICAL), pod("db", priority, claim="data"), groups=groups)
    assert found.mend == inversions.Mend(lowers_users=True)
    assert "give the users a priority below 2000001000" in inversions.inversion_text(found)


@pytest.mark.parametrize("service", [driver, network, dns])
@pytest.mark.parametrize("own", [-1, 0, 7, CRITICAL, NODE_CRITICAL])
@pytest.mark.parametrize("theirs", [-5, 0, 7, CRITICAL])
@pytest.mark.parametrize("groups", [TWO, TWO[:1], (*TWO, PhasePlan(priority=NODE_CRITICAL, seconds=9))])
def test_every_mend_mends_and_takes_no_more_time(service, own, theirs, groups):
    user = pod("db", theirs, claim="data")
    for found in find(service(own), user, groups=groups):
        after = found.mend.periods or groups
        known = {"system-cluster-critical": CRITICAL, "system-node-critical": NODE_CRITICAL}
        assert not found.mend.lowers_users
        assert sum(one.seconds for one in after) == sum(one.seconds for one in groups)
        assert [one.priority for one in after] == sorted({one.priority for one in after})
        assert find(service(known.get(found.mend.priority_class, own)), user, groups=after) == ()


# -- what is said ------------------------------------------------------------------------------------------------------


def test_the_sentence_and_the_document():
    (found,) = find(driver(), *(pod(f"db-{at}", CRITICAL, claim="data") for at in range(5)))
    said = inversions.inversion_text(found)
    assert said.startswith(
        "shop/csi (CSI driver ebs.csi.aws.com) ends in phase 1, before shop/db-0, shop/db-1, shop/db-2 and 2 more may have"
        " ended in phase 2 (its volumes cannot be unmounted then): give DaemonSet shop/ds priorityClassName"
        " system-node-critical and configure shutdownGracePeriodByPodPriority: ["
    )
    document = inversions.inversion_document(found)
    assert [document[key] for key in ("kind", "namespace", "name", "phase")] == ["CSI", "shop", "csi", 0]
    assert len(document["users"]) == 5
    assert document["mend"] == {
        "priorityClassName": "system-node-critical",
        "shutdownGracePeriodByPodPriority": [
            {"priority": 0, "shutdownGracePeriodSeconds": 60},
            {"priority": CRITICAL, "shutdownGracePeriodSeconds": 20},
            {"priority": NODE_CRITICAL, "shutdownGracePeriodSeconds": 10},
        ],
        "lowerUsers": False,
    }


AGENT = {"app.kubernetes.io/name": "lastcall", "app.kubernetes.io/component": "agent"}


def checks(*pods):
    return node_checks.check_node(AgentConfig(kind="AgentConfiguration", groups=TWO), node(*pods), "n1", float("inf"))


def test_the_agent_is_in_no_phase():
    found = checks(pod("agent", NODE_CRITICAL, labels=AGENT), pod("web"))
    assert [one.pod.key for phase in found.plan.phases for one in phase.pods] == ["shop/web"]
    assert found.to_fields()["notEnded"] == [{"namespace": "shop", "name": "agent"}]
    assert found.inversion_texts == ()
    assert "shop/agent is the agent itself, which is never ended." in found.sentences


def test_an_agent_that_the_kubelet_may_evict():
    (said,) = checks(pod("agent", 0, labels=AGENT)).inversion_texts
    assert said.endswith("give it priorityClassName system-node-critical")


def test_the_source_of_each_priority():
    found = checks(pod("web"), pod("old", None), pod("dns", None, priority_class_name="system-cluster-critical"))
    assert found.priority_sources == {"shop/web": "Watch", "shop/old": "Default", "shop/dns": "Watch"}
    assert found.sentences[0].endswith("(source Watch), but for shop/old (source Default).")
