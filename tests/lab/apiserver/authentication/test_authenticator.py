"""Who asks the lab's API server, and what it says of rights that it does not evaluate."""

import base64
import json
from random import Random

import pytest

from lastcall_lab import virtual
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.authentication.authenticator import ANONYMOUS
from lastcall_lab.apiserver.authorization.attributes import ALLOWED, AccessAttributes
from lastcall_lab.apiserver.authorization.impersonation import impersonate, requested_user
from lastcall_lab.apiserver.values.api_errors import ApiError
from lastcall_lab.apiserver.values.request import Request, UserInfo

AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
BOB = UserInfo("bob", ("g", "system:authenticated"))


class World:
    def __init__(self):
        self.clock = virtual.VirtualClock()
        self.server = ApiServer(self.clock, Random(1))

    async def ask(self, method, target, body=None, user=ANONYMOUS, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        data = json.dumps(body).encode() if body is not None else b""
        request = Request.of(method, target, headers=headers, body=data, user=user)
        response = await self.server.handle(request)
        return response.status, json.loads(response.body) if response.body[:1] == b"{" else response.body

    async def review(self, path, spec, user=BOB, **rest):
        names = {
            "tokenreviews": "TokenReview",
            "selfsubjectreviews": "SelfSubjectReview",
            "subjectaccessreviews": "SubjectAccessReview",
            "selfsubjectaccessreviews": "SelfSubjectAccessReview",
            "localsubjectaccessreviews": "LocalSubjectAccessReview",
            "selfsubjectrulesreviews": "SelfSubjectRulesReview",
        }
        kind = names[path.rpartition("/")[2]]
        group = AUTHENTICATION if kind in ("TokenReview", "SelfSubjectReview") else AUTHORIZATION
        body = {"apiVersion": group.removeprefix("/apis/"), "kind": kind, "spec": spec}
        return await self.ask("POST", f"{group}/{path}", body, user, **rest)

    async def account(self, name="robot"):
        path = "/api/v1/namespaces/default/serviceaccounts"
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        assert (await self.ask("POST", path, body, BOB))[0] == 201

    async def token(self, spec=None, name="robot"):
        path = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec or {}}
        return await self.ask("POST", path, body, BOB)

    async def whoami(self, token):
        spec = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        status, said = await self.ask(
            "POST", f"{AUTHENTICATION}/selfsubjectreviews", spec, authorization=f"Bearer {token}"
        )
        return status, said["status"]["userInfo"] if status == 201 else None


def in_virtual_time(test):
    async def main():
        await test(World())

    def run():
        virtual.run(main())

    run.__name__ = test.__name__
    return run


@in_virtual_time
async def test_a_token_says_who_asks(world):
    world.server.identities.add("t", "alice", ["operators", "system:authenticated"], uid="7")
    assert await world.whoami("t") == (
        201,
        {"username": "alice", "uid": "7", "groups": ["operators", "system:authenticated"]},
    )
    assert (await world.whoami("other"))[0] == 401
    assert (await world.whoami(""))[0] == 401


PUBLIC = ["/healthz", "/livez", "/readyz", "/version"]
CLOSED = {
    "/api/v1/pods": 'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" at the'
    " cluster scope",
    "/api/v1/namespaces/x/pods/p": 'pods "p" is forbidden: User "system:anonymous" cannot get resource "pods" in API'
    ' group "" in the namespace "x"',
    "/apis/apps/v1/namespaces/x/deployments/d/status": 'deployments.apps "d" is forbidden: User "system:anonymous"'
    ' cannot get resource "deployments/status" in API group "apps" in the namespace "x"',
    "/api/v1/namespaces/x/pods?watch=1": 'pods is forbidden: User "system:anonymous" cannot watch resource "pods" in API'
    ' group "" in the namespace "x"',
    "/metrics": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
    "/healthzz": 'forbidden: User "system:anonymous" cannot get path "/healthzz"',
}


@in_virtual_time
async def test_nobody_in_particular_may_ask_whether_the_server_is_well(world):
    for path in PUBLIC:
        assert (await world.ask("GET", path))[0] == 200, path
    for path, message in CLOSED.items():
        status, said = await world.ask("GET", path)
        assert (status, said["message"]) == (403, message)


@in_virtual_time
async def test_an_audit_names_whom_the_token_means(world):
    world.server.identities.add("t", "alice")
    await world.ask("GET", "/api/v1/pods", authorization="bearer t")
    assert [record.user for record in world.server.audit.records] == ["alice"]


# -- impersonation -----------------------------------------------------------------------------------------------------

SPEAKS = [
    ({}, None),
    ({"impersonate-user": "eve"}, UserInfo("eve", ("system:authenticated",))),
    (
        {"impersonate-user": "eve", "impersonate-group": "a, b", "impersonate-uid": "7"},
        UserInfo("eve", ("a", "b", "system:authenticated"), "7"),
    ),
    (
        {"impersonate-user": "eve", "impersonate-group": "system:authenticated"},
        UserInfo("eve", ("system:authenticated",)),
    ),
    (
        {"impersonate-user": "system:serviceaccount:ns:robot"},
        UserInfo(
            "system:serviceaccount:ns:robot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
    ),
    ({"impersonate-user": "system:anonymous"}, ANONYMOUS),
    (
        {"impersonate-user": "eve", "impersonate-extra-scopes": "view"},
        UserInfo("eve", ("system:authenticated",), "", {"scopes": ["view"]}),
    ),
]


@pytest.mark.parametrize(("headers", "identity"), SPEAKS)
def test_whom_a_request_speaks_for(headers, identity):
    wanted = requested_user(headers)
    asked = AccessAttributes(BOB, "get", resource="pods")
    assert (wanted and impersonate(asked, wanted, lambda _: ALLOWED)) == identity


def test_groups_of_nobody():
    with pytest.raises(ApiError, match="without impersonating a user"):
        requested_user({"impersonate-group": "g"})


# -- service accounts --------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_a_service_account_gets_a_token_that_is_worth_something_for_a_while(world):
    await world.account()
    status, said = await world.token({"expirationSeconds": 1200})
    assert status == 201
    assert said["spec"] == {
        "audiences": ["https://kubernetes.default.svc.cluster.local"],
        "expirationSeconds": 1200,
        "boundObjectRef": None,
    }
    token = said["status"]["token"]
    status, who = await world.whoami(token)
    assert who["username"] == "system:serviceaccount:default:robot"
    assert who["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert who["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")
    await world.clock.sleep(1201)
    assert (await world.whoami(token))[0] == 401


@in_virtual_time
async def test_a_token_dies_with_its_account_and_with_what_it_is_bound_to(world):
    await world.account()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    await world.ask("POST", "/api/v1/namespaces/default/secrets", secret, BOB)
    free = (await world.token())[1]["status"]["token"]
    bound = (await world.token({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}))[1]
    assert (await world.whoami(bound["status"]["token"]))[0] == 201
    await world.ask("DELETE", "/api/v1/namespaces/default/secrets/s", user=BOB)
    assert (await world.whoami(bound["status"]["token"]))[0] == 401
    assert (await world.whoami(free))[0] == 201
    await world.ask("DELETE", "/api/v1/namespaces/default/serviceaccounts/robot", user=BOB)
    assert (await world.whoami(free))[0] == 401


@in_virtual_time
async def test_a_token_that_was_changed_or_is_for_others_is_worth_nothing(world):
    await world.account()
    token = (await world.token())[1]["status"]["token"]
    head, claims, signature = token.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(claims + "=="))
    forged = json.dumps({**decoded, "sub": "system:admin"}).encode()
    claims = base64.urlsafe_b64encode(forged).decode().rstrip("=")
    for wrong in (f"{head}.{claims}.{signature}", f"{head}..{signature}", "a.b.c", "..", token[:-2] + "xx"):
        assert (await world.whoami(wrong))[0] == 401
    other = (await world.token({"audiences": ["vault"]}))[1]["status"]["token"]
    assert (await world.whoami(other))[0] == 401
    _, said = await world.review("tokenreviews", {"token": other, "audiences": ["vault"]})
    assert (said["status"]["authenticated"], said["status"]["audiences"]) == (True, ["vault"])


WRONG = {
    "too short": (
        {"expirationSeconds": 60},
        422,
        "spec.expirationSeconds: Invalid value: 60: may not specify a duration",
    ),
    "too long": ({"expirationSeconds": 2**33}, 422, "may not specify a duration larger than 2^32 seconds"),
    "bound to nothing": (
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}},
        404,
        'pods "p" not found',
    ),
    "bound to a thing": (
        {"boundObjectRef": {"kind": "Job", "apiVersion": "batch/v1", "name": "p"}},
        400,
        "cannot bind",
    ),
}


@pytest.mark.parametrize(("spec", "code", "said"), WRONG.values(), ids=WRONG)
def test_tokens_that_are_not_issued(spec, code, said):
    async def test():
        world = World()
        await world.account()
        status, answer = await world.token(spec)
        assert status == code
        assert said in answer["message"]

    virtual.run(test())


@in_virtual_time
async def test_there_is_no_token_without_an_account(world):
    assert (await world.token(name="nobody"))[0] == 404


# -- reviews -----------------------------------------------------------------------------------------------------------


@in_virtual_time
async def test_everything_is_allowed(world):
    spec = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}
    for path, more in (
        ("selfsubjectaccessreviews", {}),
        ("subjectaccessreviews", {"user": "eve"}),
        ("namespaces/default/localsubjectaccessreviews", {"groups": ["g"]}),
    ):
        status, said = await world.review(path, {**spec, **more})
        assert (status, said["status"]["allowed"]) == (201, True), path
    status, said = await world.review("selfsubjectrulesreviews", {"namespace": "default"})
    assert said["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


QUESTIONS = {
    "about nothing": ("selfsubjectaccessreviews", {}, "exactly one of nonResourceAttributes or resourceAttributes"),
    "about both": (
        "selfsubjectaccessreviews",
        {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
        "cannot be specified in combination with resourceAttributes",
    ),
    "about nobody": (
        "subjectaccessreviews",
        {"resourceAttributes": {"verb": "get"}},
        "at least one of user or group must be specified",
    ),
    "about another namespace": (
        "namespaces/default/localsubjectaccessreviews",
        {"user": "eve", "resourceAttributes": {"verb": "get", "namespace": "other"}},
        "must match metadata.namespace",
    ),
}


@pytest.mark.parametrize(("path", "spec", "said"), QUESTIONS.values(), ids=QUESTIONS)
def test_questions_that_make_no_sense(path, spec, said):
    async def test():
        status, answer = await World().review(path, spec)
        assert status == 422
        assert said in answer["message"]

    virtual.run(test())


@in_virtual_time
async def test_token_reviews(world):
    world.server.identities.add("t", "alice", ["g"])
    _, said = await world.review("tokenreviews", {"token": "t"})
    assert said["status"]["user"] == {"username": "alice", "groups": ["g"]}
    _, said = await world.review("tokenreviews", {"token": "bad"})
    assert said["status"] == {"user": {}, "error": "invalid bearer token"}
    assert (await world.review("tokenreviews", {}))[0] == 400


@in_virtual_time
async def test_reviews_are_only_posted(world):
    for method in ("GET", "DELETE"):
        assert (await world.ask(method, f"{AUTHENTICATION}/tokenreviews", user=BOB))[0] == 405
    assert (await world.ask("GET", f"{AUTHENTICATION}/tokenreviews/x", user=BOB))[0] in (404, 405)
