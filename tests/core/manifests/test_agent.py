"""What the agent may do in a cluster, held against what it asks for."""

import asyncio

import pytest
import yaml
from click.testing import CliRunner
from support.watchdog.peer_nodes import together
from support.watchdog.watchdog_node import NODE, lives

from lastcall import names
from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import LEASES
from lastcall.adapters.kube.storage_lease_annotation import KubeStorageAnnotation
from lastcall.cli.main import cli
from lastcall.errors import InvalidInput
from lastcall.manifests import agent, daemon_set, own_node
from lastcall.manifests.controller import NAMESPACE, ControllerChoices, controller_objects
from lastcall.manifests.drainer import drainer_objects
from lastcall.manifests.labels import NAME
from lastcall.manifests.rbac import ANYWHERE, AuditedRequest, ungranted_requests, unused_grants
from lastcall.manifests.viewer import viewer_role
from lastcall.model.storage_lease import StorageRecord
from lastcall_lab.apiserver.cel import evaluator

USED_ELSEWHERE = [
    *[("nodeshutdowns", verb) for verb in ("get", "create", "patch")],
    *[(resource, verb) for resource in ("pods", "endpointslices") for verb in ("list", "watch")],
    ("replicasets", "get"),
    ("replicationcontrollers", "get"),
]
VERBS = {"GET": "get", "POST": "create", "PATCH": "patch"}


def asked(method, path):
    """As an audit would tell it."""
    parts = path.strip("/").split("/")  # apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE[/NAME]
    group, namespace, resource = parts[1], parts[4], parts[5]
    return AuditedRequest(VERBS[method], group, resource, "", namespace, parts[6] if len(parts) > 6 else "")


def test_every_request_is_within_the_rules_and_every_rule_is_used():
    async def scene(world):
        world.agent()
        await asyncio.sleep(30)
        await world.admin.delete(LEASES, NODE, namespace=names.NODES_NAMESPACE)
        await asyncio.sleep(30)
        world.hold("the node goes down")
        await asyncio.sleep(5)
        world.leave()
        await asyncio.sleep(5)
        return [asked(*one) for one in world.line.targets]

    requests = lives(scene)
    assert ungranted_requests(agent.agent_grants(), requests) == []
    # The node's last word is another's: see test_kube_shutdown_records.
    left = [(grant.resource, verb) for grant, verb in unused_grants(agent.agent_grants(), requests)]
    assert left == USED_ELSEWHERE


def test_what_it_tells_of_shared_storage_is_within_the_same_rules():
    async def scene(world):
        word = KubeStorageAnnotation(Client(world.line), NODE)
        for _ in range(2):
            await word.write_record(StorageRecord(boot_id="b"))
        await word.clear_record()
        return [asked(*one) for one in world.line.targets]

    requests = lives(scene)
    assert {one.verb for one in requests} == {"create", "patch"}
    assert ungranted_requests(agent.agent_grants(), requests) == []


def test_with_peers_it_may_read_who_they_are_and_the_keys():
    """What asks for them is held against it in ``test_every_request_of_peers``."""
    more = [grant for grant in agent.agent_grants(peers=True) if grant not in agent.agent_grants()]
    assert [(grant.resource, grant.verbs, grant.namespace, grant.names) for grant in more] == [
        ("nodes", ("list",), ANYWHERE, ()),
        ("secrets", ("get",), names.SYSTEM_NAMESPACE, (names.PEERS_SECRET,)),
    ]
    result = CliRunner().invoke(cli, ["manifests", "agent", "--watchdog-peers"])
    assert result.exit_code == 0, result.output
    rules = [rule for one in yaml.safe_load_all(result.output) for rule in one.get("rules", ())]
    assert {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]} in rules
    secret = {"apiGroups": [""], "resourceNames": [names.PEERS_SECRET], "resources": ["secrets"], "verbs": ["get"]}
    assert secret in rules


@pytest.mark.parametrize("peers", [False, True])
def test_no_agent_touches_the_lease_by_which_controllers_elect(peers):
    """Whoever empties it, or writes a name there, says who leads."""
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    requests = [AuditedRequest(verb, "coordination.k8s.io", "leases", "", NAMESPACE, NAME) for verb in verbs]
    assert ungranted_requests(agent.agent_grants(peers=peers), requests) == requests


def test_every_request_of_peers():
    async def scene(cluster):
        await asyncio.sleep(30)
        return [one for machine in cluster.machines.values() for one in machine.line.targets]

    requests = together(scene)
    plain = {(method, path.replace("/namespaces/lastcall-system", "")) for method, path in requests}
    assert ("GET", "/api/v1/nodes") in plain
    assert ("GET", f"/api/v1/secrets/{names.PEERS_SECRET}") in plain
    assert {path.split("/")[3] for _, path in plain if path.startswith("/api/v1/")} == {"nodes", "secrets"}


def user(*nodes, **more):
    extra = {"extra": {own_node.CLAIM: list(nodes)}} if nodes else {}
    return {"username": "system:serviceaccount:lastcall-system:lastcall-agent", **extra, **more}


@pytest.mark.parametrize(
    ("who", "about", "allowed"),
    [
        (user("n1"), "n1", True),
        (user("n1"), "n2", False),
        (user("n2"), "n1", False),
        (user(), "n1", False),
        (user(extra={}), "n1", False),
        (user(extra={"authentication.kubernetes.io/pod-name": ["n1"]}), "n1", False),
        (user("n1", "n2"), "n1", False),
    ],
)
def test_an_agent_writes_of_its_own_node_alone(who, about, allowed):
    seen = {"request": {"userInfo": who}, "variables": {"node": about}}
    assert evaluator.evaluate(own_node.OWN_NODE, seen) is allowed


def test_the_policy_holds_for_agents_alone_and_for_all_that_they_write():
    [policy, binding] = agent.agent_access_objects(own_node=True)[2:4]
    [condition] = policy["spec"]["matchConditions"]
    assert evaluator.evaluate(condition["expression"], {"request": {"userInfo": user()}}) is True
    for name in ("system:serviceaccount:lastcall-system:lastcall-controller", "system:node:n1"):
        assert evaluator.evaluate(condition["expression"], {"request": {"userInfo": {"username": name}}}) is False
    rules = {
        (one["apiGroups"][0], resource)
        for one in policy["spec"]["matchConstraints"]["resourceRules"]
        for resource in one["resources"]
    }
    writes = {
        (grant.group, grant.resource)
        for grant in agent.agent_grants(peers=True, own_node=True)
        if {"create", "patch", "delete"} & {*grant.verbs}
    }
    assert rules == writes
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}


def test_rights_to_write_nodes_and_pods_come_with_the_policy_alone():
    """Without it an agent could delete the pods of every node. What they allow is in tests/cluster."""
    written = {(one.resource, verb) for one in agent.node_grants() for verb in one.verbs}
    for peers in (False, True):
        given = {(one.resource, verb) for one in agent.agent_grants(peers=peers) for verb in one.verbs}
        assert given & written <= {("leases", "patch")}
        both = {(one.resource, verb) for one in agent.agent_grants(peers=peers, own_node=True) for verb in one.verbs}
        assert written <= both


def test_the_command_prints_the_policy_where_it_is_asked_for():
    kinds = {}
    for options in ((), ("--own-node",)):
        result = CliRunner().invoke(cli, ["manifests", "agent", *options])
        assert result.exit_code == 0, result.output
        kinds[options] = {one["kind"] for one in yaml.safe_load_all(result.output)}
    added = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
    assert kinds["--own-node",] - kinds[()] == added


def test_the_command_prints_the_agent_too():
    result = CliRunner().invoke(cli, ["manifests", "agent", "--image=registry.example/a:1"])
    assert result.exit_code == 0, result.output
    found = list(yaml.safe_load_all(result.output))
    kinds = [one["kind"] for one in found]
    assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "Namespace"]
    assert kinds[-2:] == ["ConfigMap", "DaemonSet"]
    everything = controller_objects(ControllerChoices())
    assert [one for one in found[:3] if one not in everything] == [], "whoever is applied last changes nothing"
    [container] = found[-1]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/a:1"


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"image": "x y"}, '--image: "x y": must be the name of an image'),
        ({"endpoint": "/run/x.sock"}, '--container-runtime-endpoint: "/run/x.sock": must be a socket in a directory'),
        ({"endpoint": "unix:///x.sock"}, '--container-runtime-endpoint: "unix:///x.sock": must be a socket'),
    ],
)
def test_a_choice_that_cannot_be_is_refused(choice, said):
    with pytest.raises(InvalidInput) as caught:
        agent.AgentChoices(**choice)
    [violation] = caught.value.violations
    assert violation.startswith(said)


def test_the_command_prints_its_rights_alone():
    result = CliRunner().invoke(cli, ["manifests", "agent", "--access-only"])
    assert result.exit_code == 0, result.output
    place, account, *roles = yaml.safe_load_all(result.output)
    assert place in controller_objects(ControllerChoices()), (
        "it is the controller's too, and whoever is applied last changes nothing"
    )
    *roles, viewer, drains, drainer, leases = roles
    assert viewer == viewer_role(daemon_set.agent_labels())
    assert [drains, drainer, leases] == drainer_objects(daemon_set.agent_labels())
    assert [one["kind"] for one in roles] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert [one["metadata"].get("namespace") for one in roles] == [None, None, "lastcall-nodes", "lastcall-nodes"]
    assert [one["rules"] for one in roles[::2]] == [
        [
            {"apiGroups": ["lastcall.dev"], "resources": ["nodeshutdowns"], "verbs": ["get", "create", "patch"]},
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
            {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["replicationcontrollers"], "verbs": ["get"]},
        ],
        [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}],
    ]
    for role, binding in zip(roles[::2], roles[1::2], strict=True):
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        [subject] = binding["subjects"]
        assert subject == {"kind": "ServiceAccount", **{key: account["metadata"][key] for key in ("name", "namespace")}}


def test_what_cannot_be_judged_is_refused_and_changes_are_judged_as_well():
    [policy, binding] = agent.agent_access_objects(own_node=True)[2:4]
    assert policy["spec"]["failurePolicy"] == "Fail"
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    assert {tuple(one["operations"]) for one in rules} == {("CREATE", "UPDATE", "DELETE")}
    assert binding["spec"]["validationActions"] == ["Deny"]
