"""Who may act as another user. The messages are those of a kube-apiserver 1.36.2."""

import json
from random import Random

import pytest

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication.authenticator import ANONYMOUS
from lastcall_lab.apiserver.authorization.authorizer import AuthorizationMode
from lastcall_lab.apiserver.values.request import ADMIN, Request, UserInfo

ALICE = UserInfo("alice", ("developers", "system:authenticated"))
POD = "/api/v1/namespaces/default/pods/p"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
RULES = {
    "impersonate": {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"]},
    "extra": {
        "verbs": ["impersonate"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["userextras/scopes", "uids"],
    },
    "on": {"verbs": ["impersonate-on:user-info:create"], "apiGroups": ["*"], "resources": ["*"]},
    "user info": {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["users"]},
    "groups": {"verbs": ["impersonate:user-info"], "apiGroups": ["authentication.k8s.io"], "resources": ["groups"]},
    "users": {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"]},
    "one group": {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["groups"], "resourceNames": ["a"]},
    "one scope": {
        "verbs": ["impersonate"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["userextras/scopes"],
        "resourceNames": ["x"],
    },
    "one account": {
        "verbs": ["impersonate"],
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "resourceNames": ["n"],
    },
    "on a node": {"verbs": ["impersonate-on:arbitrary-node:create"], "apiGroups": ["*"], "resources": ["*"]},
    "one node": {
        "verbs": ["impersonate:arbitrary-node"],
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["nodes"],
        "resourceNames": ["n1"],
    },
    "own node": {
        "verbs": ["impersonate:associated-node", "impersonate-on:associated-node:create"],
        "apiGroups": ["*"],
        "resources": ["*"],
    },
    "one user": {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"]},
}


class World:
    def __init__(self, mode=AuthorizationMode.RBAC):
        self.server = ApiServer(virtual.VirtualClock(), Random(1), authorization=mode)

    async def ask(self, user, method, path, body=None, **headers):
        data = json.dumps(body).encode() if body else b""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = await self.server.handle(Request.of(method, path, headers=headers, body=data, user=user))
        return answer.status, json.loads(answer.body) if answer.body[:1] == b"{" else answer.body

    async def grant(self, *rules, to=None, namespace=""):
        """ALICE, or whom ``to`` names, may do what these rules allow, everywhere or in one namespace."""
        group = "rbac.authorization.k8s.io"
        kind, where = ("RoleBinding", f"namespaces/{namespace}/") if namespace else ("ClusterRoleBinding", "")
        if namespace:
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            assert (await self.ask(ADMIN, "POST", "/api/v1/namespaces", space))[0] == 201
        role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "given"}, "rules": [*rules]}
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": kind,
            "metadata": {"name": "given"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "given"},
            "subjects": [to or {"kind": "User", "apiGroup": group, "name": "alice"}],
        }
        for plural, obj in (("clusterroles", role), (f"{where}{kind.lower()}s", binding)):
            assert (await self.ask(ADMIN, "POST", f"/apis/{group}/v1/{plural}", obj))[0] == 201


def run(test, mode=AuthorizationMode.RBAC):
    async def main():
        return await test(World(mode))

    return virtual.run(main())


REFUSED = {
    "a user": (
        {"impersonate_user": "bob"},
        (
            'pods "p" is forbidden: User "{who}" cannot impersonate-on:user-info:get resource "pods" in API group "" in the'
            ' namespace "default"'
        ),
    ),
    "a service account": (
        {"impersonate_user": "system:serviceaccount:ns:n"},
        (
            'pods "p" is forbidden: User "{who}" cannot impersonate-on:serviceaccount:get resource "pods" in API group ""'
            ' in the namespace "default"'
        ),
    ),
    "a service account with groups": (
        {"impersonate_user": "system:serviceaccount:ns:n", "impersonate_group": "system:masters"},
        (
            'serviceaccounts "n" is forbidden: User "{who}" cannot impersonate resource "serviceaccounts" in API group ""'
            ' in the namespace "ns"'
        ),
    ),
    "a node": (
        {"impersonate_user": "system:node:n1"},
        (
            'pods "p" is forbidden: User "{who}" cannot impersonate-on:arbitrary-node:get resource "pods" in API group ""'
            ' in the namespace "default"'
        ),
    ),
    "a node with groups": (
        {"impersonate_user": "system:node:n1", "impersonate_group": "system:masters"},
        (
            'users "system:node:n1" is forbidden: User "{who}" cannot impersonate resource "users" in API group "" at the'
            " cluster scope"
        ),
    ),
}


@pytest.mark.parametrize("who", [ALICE, ANONYMOUS], ids=["alice", "anonymous"])
@pytest.mark.parametrize(("headers", "message"), REFUSED.values(), ids=REFUSED)
def test_who_may_not_act_as_another_is_refused(who, headers, message):
    async def test(world):
        status, said = await world.ask(who, "GET", POD, **headers)
        assert (status, said["message"]) == (403, message.format(who=who.name))

    run(test)


@pytest.mark.parametrize("mode", AuthorizationMode)
@pytest.mark.parametrize("path", ["/api/v1/namespaces/default/secrets", "/lab/status", f"{POD}/exec?command=sh"])
def test_a_header_alone_gives_no_rights(mode, path):
    """Without a token nothing is allowed, whatever user or group the headers name."""

    async def test(world):
        headers = {"impersonate_user": "admin", "impersonate_group": "system:masters"}
        assert (await world.ask(ANONYMOUS, "GET", path, **headers))[0] == 403

    run(test, mode)


def test_a_wrong_token_is_refused_before_the_headers_are_looked_at():
    async def test(world):
        headers = {"authorization": "Bearer wrong", "impersonate_user": "bob"}
        assert (await world.ask(ANONYMOUS, "GET", POD, **headers))[0] == 401

    run(test)


def test_groups_without_a_user():
    async def test(world):
        headers = {"impersonate_extra_foo": "g, h", "impersonate_uid": "7"}
        status, said = await world.ask(ADMIN, "GET", POD, **headers)
        assert (status, said["reason"]) == (400, "BadRequest")
        assert said["message"] == (
            'requested &user.DefaultInfo{Name:"", UID:"7", Groups:[]string(nil), Extra:map[string][]string'
            '{"foo":[]string{"g", "h"}}} without impersonating a user name'
        )

    run(test)


ALLOWED = {
    "by the verb impersonate": (["impersonate"], {"impersonate_user": "jane"}, 201),
    "with groups": (["impersonate"], {"impersonate_user": "jane", "impersonate_group": "a, b"}, 201),
    "extra fields need a right": (["impersonate"], {"impersonate_user": "jane", "impersonate_extra_scopes": "x"}, 403),
    "extra fields": (["impersonate", "extra"], {"impersonate_user": "jane", "impersonate_extra_scopes": "x"}, 201),
    "other extra fields": (["impersonate", "extra"], {"impersonate_user": "jane", "impersonate_extra_x": "x"}, 403),
    "a uid": (["impersonate", "extra"], {"impersonate_user": "jane", "impersonate_uid": "7"}, 201),
    "a service account": (["impersonate"], {"impersonate_user": "system:serviceaccount:ns:n"}, 201),
    "one user": (["one user"], {"impersonate_user": "jane"}, 201),
    "another user": (["one user"], {"impersonate_user": "joe"}, 403),
    "groups need a right": (["users"], {"impersonate_user": "jane", "impersonate_group": "a"}, 403),
    "one group": (["users", "one group"], {"impersonate_user": "jane", "impersonate_group": "a"}, 201),
    "each group needs a right": (
        ["users", "one group"],
        {"impersonate_user": "jane", "impersonate_group": "a, system:masters"},
        403,
    ),
    "a uid needs a right": (["impersonate"], {"impersonate_user": "jane", "impersonate_uid": "7"}, 403),
    "one value": (["impersonate", "one scope"], {"impersonate_user": "jane", "impersonate_extra_scopes": "x"}, 201),
    "each value needs a right": (
        ["impersonate", "one scope"],
        {"impersonate_user": "jane", "impersonate_extra_scopes": "x, y"},
        403,
    ),
    "a service account is no user": (["users"], {"impersonate_user": "system:serviceaccount:ns:n"}, 403),
    "one service account": (["one account"], {"impersonate_user": "system:serviceaccount:ns:n"}, 201),
    "another service account": (["one account"], {"impersonate_user": "system:serviceaccount:ns:m"}, 403),
    "one node": (["on a node", "one node"], {"impersonate_user": "system:node:n1"}, 201),
    "another node": (["on a node", "one node"], {"impersonate_user": "system:node:n2"}, 403),
    "a node needs a right": (["on a node"], {"impersonate_user": "system:node:n1"}, 403),
    "its own node is for who runs there": (["own node"], {"impersonate_user": "system:node:n1"}, 403),
    "constrained": (["on", "user info"], {"impersonate_user": "jane"}, 201),
    "constrained needs both": (["user info"], {"impersonate_user": "jane"}, 403),
    "constrained is never a node": (["on", "user info"], {"impersonate_user": "system:node:n1"}, 403),
    "constrained groups": (
        ["on", "user info", "groups"],
        {"impersonate_user": "jane", "impersonate_group": "a"},
        201,
    ),
    "constrained is never a master": (
        ["on", "user info", "groups"],
        {"impersonate_user": "jane", "impersonate_group": "system:masters"},
        403,
    ),
}


@pytest.mark.parametrize(("rules", "headers", "code"), ALLOWED.values(), ids=ALLOWED)
def test_who_may_act_as_another(rules, headers, code):
    async def test(world):
        await world.grant(*(RULES[name] for name in rules))
        status, said = await world.ask(ALICE, "POST", WHO, REVIEW, **headers)
        assert status == code
        if code == 201:
            assert said["status"]["userInfo"]["username"] == headers["impersonate_user"]

    run(test)


@pytest.mark.parametrize(("runs_on", "code"), [(["n1"], 201), (["n2"], 403), (["n1", "n2"], 403)])
def test_a_service_account_may_act_as_the_node_that_it_runs_on(runs_on, code):
    async def test(world):
        await world.grant(RULES["own node"], to={"kind": "ServiceAccount", "namespace": "ns", "name": "agent"})
        extra = {"authentication.kubernetes.io/node-name": runs_on}
        agent = UserInfo("system:serviceaccount:ns:agent", ("system:authenticated",), extra=extra)
        assert (await world.ask(agent, "POST", WHO, REVIEW, impersonate_user="system:node:n1"))[0] == code

    run(test)


def test_who_may_act_as_the_service_accounts_of_one_namespace():
    async def test(world):
        await world.grant(RULES["impersonate"], namespace="ns")
        for namespace, code in (("ns", 201), ("default", 403), ("kube-system", 403)):
            user = f"system:serviceaccount:{namespace}:n"
            assert (await world.ask(ALICE, "POST", WHO, REVIEW, impersonate_user=user))[0] == code, namespace

    run(test)


def test_who_acts_as_another_has_that_users_rights():
    async def test(world):
        await world.grant(RULES["impersonate"])
        status, said = await world.ask(ALICE, "GET", POD, impersonate_user="jane")
        assert (status, said["message"].partition(": ")[2]) == (
            403,
            'User "jane" cannot get resource "pods" in API group "" in the namespace "default"',
        )
        assert (await world.ask(ALICE, "GET", POD, impersonate_user="x", impersonate_group="system:masters"))[0] == 404
        assert [one.user for one in world.server.audit.records][-2:] == ["jane", "x"]

    run(test)
