"""ClusterRoles that are made of others, as the controller of the lab makes them."""

import json

from support.lab.controller_cluster import LabCluster

from lastcall.adapters.kube.resources import dict_resource
from lastcall_lab import virtual
from lastcall_lab.apiserver.values.request import Request, UserInfo
from lastcall_lab.controllers.cluster.cluster_role_aggregation import ClusterRoleAggregator

ROLES = dict_resource("rbac.authorization.k8s.io", "v1", "clusterroles")
BINDINGS = dict_resource("rbac.authorization.k8s.io", "v1", "rolebindings")
JANE = UserInfo("jane", ("system:authenticated",))
READ = {"verbs": ["get"], "apiGroups": ["lastcall.dev"], "resources": ["fencepolicies"]}


def run(test):
    async def main():
        cluster = LabCluster(virtual.VirtualClock(), [ClusterRoleAggregator()])
        await cluster.begin()
        running = cluster.runner.run()
        group = virtual.VirtualProcess("controllers")
        group.start(running, "controllers")
        await cluster.clock.sleep(1)
        await test(cluster)
        group.kill()

    virtual.run(main())


def rules(cluster, name):
    return cluster.get(ROLES, name)["rules"]


def own(cluster, name):
    """The rules of the roles that are a part of another one."""
    return rules(cluster, f"system:aggregate-to-{name}")


def test_the_roles_of_users_have_the_rules_of_their_parts():
    async def test(cluster):
        assert rules(cluster, "view") == own(cluster, "view")
        for name, parts in (("edit", ("edit", "view")), ("admin", ("admin", "edit", "view"))):
            wanted = [json.dumps(rule) for part in parts for rule in own(cluster, part)]
            assert sorted(json.dumps(rule) for rule in rules(cluster, name)) == sorted(wanted)

    run(test)


def test_a_role_with_the_label_becomes_a_part_and_ceases_to_be_one():
    async def test(cluster):
        labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        role = {"metadata": {"name": "policies", "labels": labels}, "rules": [READ]}
        await cluster.create(ROLES, role, namespace="")
        await cluster.clock.sleep(1)
        assert all(READ in rules(cluster, name) for name in ("view", "edit", "admin"))
        await cluster.delete(ROLES, "policies", namespace="")
        await cluster.clock.sleep(1)
        assert not any(READ in rules(cluster, name) for name in ("view", "edit", "admin"))

    run(test)


def test_view_does_not_show_secrets():
    async def test(cluster):
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}
        binding = {"metadata": {"name": "jane"}, "roleRef": reference, "subjects": [subject]}
        await cluster.create(BINDINGS, binding)

        async def asked(method, what):
            request = Request.of(method, f"/api/v1/namespaces/default/{what}", user=JANE)
            return (await cluster.server.handle(request)).status

        assert await asked("GET", "pods") == 200
        assert await asked("GET", "secrets") == 403
        assert await asked("DELETE", "pods") == 403

    run(test)
