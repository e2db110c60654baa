"""The lab's own programs, and lastcall's, have the rights that they need, and no others."""

from collections import Counter
from random import Random

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall.manifests import controller
from lastcall.manifests.labels import NAME
from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authorization.attributes import AccessAttributes
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.control_plane import identities
from lastcall_lab.simulation.rehearsal import Rehearsal
from lastcall_lab.simulation.scenario_text.reader import read_scenario
from lastcall_lab.simulation.shipped_scenarios import scenario_text

FAILOVER = identities.service_account_identity(controller.NAMESPACE, NAME)


@pytest.mark.parametrize("name", ["rolling-reboot", "power-cut-fenced", "watchdog-peers", "k3s-storage-last"])
def test_no_program_asks_for_what_it_may_not(name):
    """Kubelets, proxies, Kubernetes' controllers, the scheduler, the failover controller and agents, by RBAC."""

    scenario = read_scenario(scenario_text(name), name)

    async def play():
        rehearsal = Rehearsal(scenario, 1, authorization=AuthorizationMode.RBAC)
        await rehearsal.run()
        return rehearsal.cluster.plane.server.audit

    audit = virtual.run(play())
    refused = Counter(
        (one.user, one.verb, one.group, one.resource, one.subresource) for one in audit.records if one.code == 403
    )
    assert refused == {}
    users = {one.user for one in audit.records}
    assert any(user.startswith("system:node:") for user in users)
    assert not {"system:kube-controller-manager", "system:admin"} & {
        one.user for one in audit.records if one.verb in ("create", "update", "patch", "delete")
    }


FORBIDDEN = {
    "agents read no Secrets": (identities.AGENT, "get", "", "secrets"),
    "agents change no Nodes": (identities.AGENT, "patch", "", "nodes"),
    "agents delete no Pods": (identities.AGENT, "delete", "", "pods"),
    "the failover controller runs nothing": (FAILOVER, "create", "", "pods/exec"),
    "the failover controller makes no Pods": (FAILOVER, "create", "", "pods"),
    "the failover controller gives no rights": (
        FAILOVER,
        "create",
        "rbac.authorization.k8s.io",
        "clusterrolebindings",
    ),
    "the failover controller reads Secrets of its own namespace alone": (FAILOVER, "list", "", "secrets"),
    "the scheduler deletes no Nodes": (identities.SCHEDULER, "delete", "", "nodes"),
    "the scheduler reads no Secrets": (identities.SCHEDULER, "get", "", "secrets"),
    "proxies read no Secrets": (identities.PROXY, "list", "", "secrets"),
    "proxies change no Services": (identities.PROXY, "patch", "", "services"),
    "kubelets delete no Nodes": (identities.kubelet_identity("n1"), "delete", "", "nodes"),
    "the attacher reads no Secrets": (identities.controller_identity("csi-attacher", ""), "get", "", "secrets"),
    "the job controller makes no roles": (
        identities.controller_identity("job", "jobs"),
        "create",
        "rbac.authorization.k8s.io",
        "roles",
    ),
    "the pod collector changes no Deployments": (
        identities.controller_identity("podgc", "pods"),
        "patch",
        "apps",
        "deployments",
    ),
}


@pytest.fixture(scope="module")
def authorizer():
    """Of a lab in which the manifests of both programs were applied."""
    rights = [
        *identities.cluster_roles(),
        *(one for one in controller.controller_objects(controller.ControllerChoices()) if _right(one)),
    ]
    server = ApiServer(SystemClock(), Random(1), authorization=AuthorizationMode.RBAC, roles=rights)
    return server.authorizer


def _right(obj):
    return obj["apiVersion"].startswith("rbac.authorization.k8s.io/")


@pytest.mark.parametrize(("user", "verb", "group", "resource"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_what_they_should_not_do_is_refused(authorizer, user, verb, group, resource):
    resource, _, part = resource.partition("/")
    asked = AccessAttributes(user, verb, group, resource, part, "default", "x")
    assert not authorizer.authorize(asked).allowed


def test_everybody_who_acts_has_the_rights_of_a_role(authorizer):
    """Otherwise a test by denial would prove nothing."""
    allowed = [
        AccessAttributes(identities.AGENT, "patch", "lastcall.dev", "nodeshutdowns", name="n1"),
        AccessAttributes(FAILOVER, "patch", "", "nodes", name="n1"),
        AccessAttributes(identities.SCHEDULER, "create", "", "pods", "binding", "default", "p"),
        AccessAttributes(identities.PROXY, "watch", "discovery.k8s.io", "endpointslices"),
        AccessAttributes(identities.controller_identity("job", "pods"), "create", "", "pods", namespace="default"),
    ]
    assert [one for one in allowed if not authorizer.authorize(one).allowed] == []
