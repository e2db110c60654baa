"""Paths, methods, media types, discovery, identities: the protocol around the objects."""

import base64
import json

import pytest
from support.conformance.api_client import MERGE, causes
from support.conformance.objects import config_map, meta, pod

from lastcall.adapters.kube.resources import CONFIG_MAPS, LEASES, PODS, dict_resource

source = pytest.mark.source
SERVER = "staging/src/k8s.io/apiserver/pkg/server/handler.go"
REQUEST_INFO = "staging/src/k8s.io/apiserver/pkg/endpoints/request/requestinfo.go"
INSTALLER = "staging/src/k8s.io/apiserver/pkg/endpoints/installer.go"
DISCOVERY = "https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api"
OPTIONS = "staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go"
AUTHENTICATION = "https://kubernetes.io/docs/reference/access-authn-authz/authentication/"
IMPERSONATION = AUTHENTICATION + "#user-impersonation"
REVIEWS = "https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access"
TOKENS = "https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ACCOUNTS = dict_resource("", "v1", "serviceaccounts")


# -- paths and methods -------------------------------------------------------------------------------------------------


@source(SERVER)
@pytest.mark.parametrize("path", ["/nothing", "/apis/no-such-group.example.com/v1/things", "/api/v9/pods"])
async def test_paths_that_are_not_there(api, path):
    """404; in a group that is served a Status, else plain text."""
    reply = await api.ask("GET", path).reply()
    assert reply.status == 404
    assert "404 page not found" in reply.data.decode() or reply.body["kind"] == "Status"


@source(INSTALLER)
async def test_a_resource_that_is_not_there(api):
    """Of a version that is served: a Status."""
    status = await api.ask("GET", "/api/v1/things").refused(404, "NotFound")
    assert status["message"] == "the server could not find the requested resource"


@source(INSTALLER)
@pytest.mark.parametrize("sub", ["nothing", "scale"])
async def test_a_subresource_that_is_not_there(api, sub):
    """404."""
    await api.create(PODS, pod())
    await api.get(PODS, "p", sub).refused(404, "NotFound")


@source(INSTALLER)
@pytest.mark.parametrize(("method", "name"), [("PUT", ""), ("PATCH", ""), ("POST", "m")])
async def test_methods_in_the_wrong_place(api, method, name):
    """405: collections are not replaced, objects are not posted to."""
    kind = MERGE if method == "PATCH" else "application/json"
    status = await api.ask(method, api.at(CONFIG_MAPS, name), config_map(), kind=kind).refused(405, "MethodNotAllowed")
    assert status["message"] == "the server does not allow this method on the requested resource"


@source(REQUEST_INFO)
async def test_a_slash_at_the_end(api):
    """It does not matter."""
    assert (await api.ask("GET", api.at(LEASES) + "/"))["kind"] == "LeaseList"


@source(INSTALLER)
async def test_namespaced_objects_are_not_made_across_namespaces(api):
    """The collection of all namespaces can only be read."""
    await api.ask("POST", "/api/v1/configmaps", config_map(namespace=api.namespace)).refused(405, "MethodNotAllowed")


# -- bodies ------------------------------------------------------------------------------------------------------------


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/negotiation/negotiate.go")
async def test_a_body_of_an_unknown_type(api):
    """415 that names those that there are."""
    call = api.ask("POST", api.at(CONFIG_MAPS), b"x", kind="text/csv")
    assert "application/json" in (await call.refused(415, "UnsupportedMediaType"))["message"]


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
@pytest.mark.parametrize("body", [b"{", b"[]", b'"text"', b"", b"\x00", b'{"metadata": 3}', b'{"kind": 1}'])
async def test_a_body_that_is_no_object(api, body):
    """400."""
    await api.ask("POST", api.at(CONFIG_MAPS), body).refused(400, "BadRequest")


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go")
async def test_a_body_that_is_too_large(api):
    """413: three MiB are enough."""
    body = json.dumps(config_map(data={"k": "x" * (3 * 1024 * 1024 + 1)})).encode()
    reply = await api.ask("POST", api.at(CONFIG_MAPS), body).reply()
    assert reply.status == 413


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
async def test_fields_are_told_apart_by_case(api):
    """Data is no field of a ConfigMap."""
    reply = await api.create(CONFIG_MAPS, {**meta("m"), "Data": {"a": "b"}}).reply()
    assert "data" not in reply.good()
    assert 'unknown field \\"Data\\"' in reply.headers["warning"]


@source("staging/src/k8s.io/apimachinery/pkg/runtime/serializer/json/json.go")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"spec": {"containers": "c"}}, "cannot unmarshal string into Go struct field PodSpec.spec.containers"),
        ({"spec": {"hostNetwork": "yes"}}, "cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork"),
        ({"spec": {"priority": 1.5}}, "cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority"),
        ({"spec": {"priority": 3000000000}}, "cannot unmarshal number 3000000000 into Go struct field"),
        ({"spec": {"overhead": {"cpu": "lots"}}}, "quantities must match the regular expression"),
    ],
)
async def test_types_of_fields(api, body, why):
    """400 in the decoder's words, with the path of the field."""
    status = await api.create(PODS, {**meta("p"), **body}).refused(400, "BadRequest")
    assert why in status["message"]


# -- options -----------------------------------------------------------------------------------------------------------


@source(OPTIONS)
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"dryRun": "Some"}, "dryRun"),
        ({"fieldValidation": "Hard"}, "fieldValidation"),
        ({"fieldManager": "a\nb"}, "fieldManager"),
    ],
)
async def test_options_that_are_none(api, query, field):
    """422 of CreateOptions."""
    status = await api.create(CONFIG_MAPS, config_map(), **query).refused(422, "Invalid")
    assert [found for _, found in causes(status)] == [field]
    assert status["details"]["kind"] == "CreateOptions"


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/get.go")
@pytest.mark.parametrize("query", [{"limit": "many"}, {"timeoutSeconds": "x"}])
async def test_numbers_that_are_none(api, query):
    """400."""
    await api.list(LEASES, **query).refused(400, "BadRequest")


@source("staging/src/k8s.io/apimachinery/pkg/runtime/converter.go")
async def test_whatever_is_not_false_is_true(api):
    """watch=perhaps is a watch, watch=false and watch=0 are none."""
    async with api.stream(api.at(LEASES), watch="perhaps", timeoutSeconds=60) as events:
        await api.create(LEASES, meta("l"))
        assert await events.names(1) == [("ADDED", "l")]
    for no in ("false", "0"):
        assert (await api.list(LEASES, watch=no))["kind"] == "LeaseList"


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go")
async def test_a_negative_limit_is_none(api):
    """All items."""
    await api.create(LEASES, meta("l"))
    assert await api.names(LEASES, limit=-1) == ["l"]


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/rest.go")
async def test_unknown_options_do_not_matter(api):
    """Clients of other versions send them."""
    await api.list(LEASES, whatever="x")


# -- discovery ---------------------------------------------------------------------------------------------------------


@source(DISCOVERY)
async def test_groups_are_discovered(api):
    """/apis has each with its versions and the preferred one."""
    groups = {one["name"]: one for one in (await api.ask("GET", "/apis"))["groups"]}
    assert {"apps", "batch", "policy", "coordination.k8s.io", "storage.k8s.io", "events.k8s.io"} <= set(groups)
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}


@source(DISCOVERY)
async def test_one_group_is_discovered(api):
    """/apis/GROUP is an APIGroup."""
    found = await api.ask("GET", "/apis/policy")
    assert (found["kind"], found["name"], found["preferredVersion"]["version"]) == ("APIGroup", "policy", "v1")


@source(DISCOVERY)
async def test_resources_are_discovered(api):
    """With kind, verbs and short names; subresources beside them."""
    found = {one["name"]: one for one in (await api.ask("GET", "/api/v1"))["resources"]}
    assert found["pods"]["shortNames"] == ["po"]
    assert (found["pods"]["namespaced"], found["nodes"]["namespaced"]) == (True, False)
    assert found["pods/eviction"] | {"verbs": []} == {
        "name": "pods/eviction",
        "singularName": "",
        "namespaced": True,
        "group": "policy",
        "version": "v1",
        "kind": "Eviction",
        "verbs": [],
    }
    assert "deletecollection" not in found["namespaces"]["verbs"]


@source("https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3352-aggregated-discovery")
async def test_everything_is_discovered_at_once(api):
    """Aggregated discovery, by its media type."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    reply = await api.ask("GET", "/apis", accept=accept).reply()
    assert reply.body["kind"] == "APIGroupDiscoveryList"
    assert reply.headers["content-type"].startswith("application/json;g=apidiscovery.k8s.io;v=v2")
    apps = next(one for one in reply.body["items"] if one["metadata"]["name"] == "apps")
    assert "deployments" in [one["resource"] for one in apps["versions"][0]["resources"]]


@source("https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3352-aggregated-discovery")
async def test_discovery_that_is_known_is_not_sent_again(api):
    """ETag and If-None-Match."""
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    first = await api.ask("GET", "/api", accept=accept).reply()
    again = await api.ask("GET", "/api", accept=accept, headers={"if-none-match": first.headers["etag"]}).reply()
    assert (again.status, again.data) == (304, b"")


@source("https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3")
async def test_schemas_are_found(api):
    """/openapi/v3 lists a document for each version of a group; the hash changes with it."""
    paths = json.loads((await api.ask("GET", "/openapi/v3").reply()).data)["paths"]
    where = paths["apis/apps/v1"]["serverRelativeURL"]
    assert where.startswith("/openapi/v3/apis/apps/v1?hash=")
    document = await api.ask("GET", where)
    assert "io.k8s.api.apps.v1.Deployment" in document["components"]["schemas"]


@source("staging/src/k8s.io/apiserver/pkg/server/routes/version.go")
async def test_the_version(api):
    """major, minor and gitVersion."""
    found = await api.ask("GET", "/version")
    assert found["gitVersion"].startswith(f"v{found['major']}.")


@source("https://kubernetes.io/docs/reference/using-api/health-checks/")
@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
async def test_health(api, path):
    """ok; with verbose each check has a line."""
    assert (await api.ask("GET", path, accept="*/*").reply()).data == b"ok"
    verbose = (await api.ask("GET", path, accept="*/*", verbose="").reply()).data.decode()
    assert "[+]ping ok" in verbose
    assert "check passed" in verbose


@source("https://kubernetes.io/docs/reference/using-api/health-checks/")
async def test_health_of_one_thing(api):
    """Each check has a path."""
    assert (await api.ask("GET", "/livez/ping", accept="*/*").reply()).data == b"ok"


@source("https://kubernetes.io/docs/reference/using-api/deprecation-policy/#rest-resources-aka-api-objects")
async def test_deprecated_resources_are_warned_of(api):
    """v1 ComponentStatus."""
    reply = await api.ask("GET", "/api/v1/componentstatuses").reply()
    assert reply.headers["warning"] == '299 - "v1 ComponentStatus is deprecated in v1.19+"'


# -- identities --------------------------------------------------------------------------------------------------------


async def who(api, **headers):
    """What the server thinks that we are."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reply = await api.ask("POST", SELF, body, headers={k.replace("_", "-"): v for k, v in headers.items()}).reply()
    return reply.good()["status"]["userInfo"]


@source("https://github.com/kubernetes/enhancements/tree/master/keps/sig-auth/3325-self-subject-attributes-review-api")
async def test_who_am_i(api):
    """SelfSubjectReview."""
    found = await who(api)
    assert found["username"]
    assert "system:authenticated" in found["groups"]


@source(IMPERSONATION)
async def test_as_somebody_else(api):
    """Impersonate-User, -Group and -Extra."""
    found = await who(api, impersonate_user="jane", impersonate_group="dev", impersonate_extra_a="b")
    assert found["username"] == "jane"
    assert set(found["groups"]) == {"dev", "system:authenticated"}
    assert found["extra"] == {"a": ["b"]}


@source(IMPERSONATION)
async def test_as_a_service_account(api):
    """Its groups follow from its name."""
    found = await who(api, impersonate_user=f"system:serviceaccount:{api.namespace}:default")
    assert set(found["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{api.namespace}",
        "system:authenticated",
    }


@source(IMPERSONATION)
async def test_groups_of_nobody(api):
    """Impersonate-Group needs a user."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reply = await api.ask("POST", SELF, body, headers={"impersonate-group": "dev"}).reply()
    assert reply.status >= 400


@source(REVIEWS)
async def test_may_i(api):
    """SelfSubjectAccessReview: whoever runs this suite may do everything."""
    spec = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": api.namespace}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    reply = await api.ask("POST", ACCESS, body).reply()
    assert (reply.status, reply.body["status"]["allowed"]) == (201, True)


@source(REVIEWS)
async def test_an_access_review_needs_a_question(api):
    """Either a resource or a path."""
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}
    await api.ask("POST", ACCESS, body).refused(422, "Invalid")


@source(TOKENS)
async def test_a_token_of_a_service_account(api):
    """A TokenRequest gives a token that the server knows again."""
    await api.create(ACCOUNTS, meta("robot"))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    token = (await api.ask("POST", api.at(ACCOUNTS, "robot", "token"), body))["status"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    found = (await api.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review))["status"]
    assert found["authenticated"] is True
    assert found["user"]["username"] == f"system:serviceaccount:{api.namespace}:robot"
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["kubernetes.io"]["serviceaccount"]["name"] == "robot"
    assert claims["exp"] - claims["iat"] == 600


@source(TOKENS)
async def test_a_short_token(api):
    """Ten minutes at least."""
    await api.create(ACCOUNTS, meta("robot"))
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 60}}
    status = await api.ask("POST", api.at(ACCOUNTS, "robot", "token"), body).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "spec.expirationSeconds")]


@source(AUTHENTICATION)
async def test_a_token_of_nobody(api):
    """A TokenReview says that it is none."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x.y.z"}}
    found = (await api.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review))["status"]
    assert found.get("authenticated", False) is False


# -- odd paths and methods ---------------------------------------------------------------------------------------------


@source(SERVER)
@pytest.mark.parametrize("path", ["//", "//api", "//api/v1", "/apis//v1", "/healthz/", "/metrics/", "/openapi/v2/"])
async def test_paths_that_nothing_is_at(api, path):
    """404 in plain text."""
    reply = await api.ask("GET", path).reply()
    assert (reply.status, reply.data) == (404, b"404 page not found\n")


@source(REQUEST_INFO)
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1//pods",
        "/api//v1",
        "/api/v2",
        "/apis/apps/v9",
        "/api/v1/pods/x",
        "/api/v1/namespaces/{}//pods",
        "/api/v1/namespaces/{}/pods/x//status",
        "/api/v1/namespaces/{}/pods/x/status/y",
    ],
)
async def test_paths_that_name_no_resource(api, path):
    """404 as a Status that names nothing."""
    status = await api.ask("GET", path.format(api.namespace)).refused(404, "NotFound")
    assert (status["message"], status["details"]) == ("the server could not find the requested resource", {})


@source(REQUEST_INFO)
async def test_slashes_behind_a_path(api):
    """They do not matter."""
    await api.create(CONFIG_MAPS, config_map())
    for behind in ("", "/", "//"):
        assert (await api.ask("GET", f"{api.at(CONFIG_MAPS)}{behind}"))["kind"] == "ConfigMapList"


@source("staging/src/k8s.io/apimachinery/pkg/api/validation/path/name.go")
@pytest.mark.parametrize("name", ["%2e", "%2e%2e"])
async def test_names_that_a_path_cannot_have(api, name):
    """400."""
    status = await api.ask("GET", f"{api.at(CONFIG_MAPS)}/{name}").refused(400, "BadRequest")
    dots = name.replace("%2e", ".")
    assert status["message"] == f"Name parameter invalid: \"{dots}\": may not be '{dots}'"


@source(INSTALLER)
@pytest.mark.parametrize("method", ["FOO", "PROPFIND", "get"])
async def test_methods_that_nobody_knows(api, method):
    """405 at resources and documents; lists of paths and groups do not look at the method."""
    for path in (api.at(CONFIG_MAPS), "/api", "/version", "/api/v1"):
        await api.ask(method, path).refused(405, "MethodNotAllowed")
    assert (await api.ask(method, "/apis"))["kind"] == "APIGroupList"
