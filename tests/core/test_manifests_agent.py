"""What the agent may do in a cluster, held against what it asks for."""

import asyncio

import yaml
from click.testing import CliRunner
from support.watchdogs import NODE, lives

from lastcall import names
from lastcall.adapters.kube.resources import LEASES
from lastcall.cli.main import cli
from lastcall.manifests import agent
from lastcall.manifests.rbac import Asked, beyond, unused

VERBS = {"GET": "get", "POST": "create", "PATCH": "patch"}


def asked(method, path):
    """As an audit would tell it."""
    parts = path.strip("/").split("/")  # apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE[/NAME]
    group, namespace, resource = parts[1], parts[4], parts[5]
    return Asked(VERBS[method], group, resource, "", namespace, parts[6] if len(parts) > 6 else "")


def test_every_request_is_within_the_rules_and_every_rule_is_used():
    async def scene(world):
        world.agent()
        await asyncio.sleep(30)
        await world.admin.delete(LEASES, NODE, namespace=names.SYSTEM_NAMESPACE)
        await asyncio.sleep(30)
        world.hold("the node goes down")
        await asyncio.sleep(5)
        world.leave()
        await asyncio.sleep(5)
        return [asked(*one) for one in world.line.targets]

    requests = lives(scene)
    assert beyond(agent.grants(), requests) == []
    assert unused(agent.grants(), requests) == []


def test_the_command_prints_them():
    result = CliRunner().invoke(cli, ["manifests", "agent"])
    assert result.exit_code == 0, result.output
    account, role, binding = yaml.safe_load_all(result.output)
    assert [one["kind"] for one in (account, role, binding)] == ["ServiceAccount", "Role", "RoleBinding"]
    assert {one["metadata"]["namespace"] for one in (account, role, binding)} == {"lastcall-system"}
    assert role["rules"] == [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "patch"]}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"][0]["name"] == account["metadata"]["name"]
