"""What an object may be called, and what its metadata may say."""

import pytest
from support.conformance.api_client import causes, unique
from support.conformance.objects import config_map, meta, pod, service

from lastcall.adapters.kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES, PODS, PRIORITY_CLASSES, SERVICES

source = pytest.mark.source
VALIDATION = "staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go"
META = "staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go"
NAMES = "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/"


@source(VALIDATION)
@pytest.mark.parametrize("name", ["UPPER", "under_score", "-begins", "ends-", "a..b", "sp ace"])
async def test_a_name_that_is_no_subdomain_is_refused(api, name):
    """A ConfigMap's name is an RFC 1123 subdomain; the rule is told with its regular expression."""
    status = await api.create(CONFIG_MAPS, config_map(name)).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "metadata.name")]
    assert "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters" in status["message"]
    assert "regex used for validation is" in status["message"]


@source("staging/src/k8s.io/apimachinery/pkg/api/validation/path/name.go")
@pytest.mark.parametrize(("name", "rule"), [("a/b", "may not contain '/'"), ("a%b", "may not contain '%'")])
async def test_a_name_that_cannot_stand_in_a_path(api, name, rule):
    """Also kinds with free names (RBAC roles) refuse what a URL path cannot hold."""
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{api.namespace}/roles"
    status = await api.ask("POST", roles, {**meta(name), "rules": []}).refused(422, "Invalid")
    assert rule in status["message"]


@source("pkg/apis/rbac/validation/validation.go")
async def test_roles_may_have_names_with_colons_and_capitals(api):
    """RBAC names are path segments, not DNS names."""
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{api.namespace}/roles"
    made = await api.ask("POST", roles, {**meta("System:Some_Role"), "rules": []})
    assert made["metadata"]["name"] == "System:Some_Role"


@source(NAMES)
async def test_a_name_may_have_253_characters(api):
    """The longest subdomain is accepted."""
    name = "a" * 253
    assert (await api.create(CONFIG_MAPS, config_map(name)))["metadata"]["name"] == name


@source(VALIDATION)
async def test_a_name_of_254_characters_is_too_long(api):
    """One more is refused."""
    status = await api.create(CONFIG_MAPS, config_map("a" * 254)).refused(422, "Invalid")
    assert "must be no more than 253 characters" in status["message"]


@source(VALIDATION)
async def test_a_namespace_is_a_label_without_dots(api):
    """Namespaces are RFC 1123 labels."""
    status = await api.create(NAMESPACES, meta("a.b")).refused(422, "Invalid")
    assert "must not contain dots" in status["message"]


@source(VALIDATION)
async def test_a_namespace_has_at_most_63_characters(api):
    """A label is shorter than a subdomain."""
    status = await api.create(NAMESPACES, meta("a" * 64)).refused(422, "Invalid")
    assert "must be no more than 63 characters" in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/storage/names/generate.go")
async def test_a_generated_name_has_five_characters_behind_its_prefix(api):
    """They are taken from an alphabet without vowels and look-alikes."""
    made = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "gen-"}})
    suffix = made["metadata"]["name"].removeprefix("gen-")
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert made["metadata"]["generateName"] == "gen-"


@source("staging/src/k8s.io/apiserver/pkg/storage/names/generate.go")
async def test_a_long_prefix_is_cut_for_a_generated_name(api):
    """The whole has 63 characters at most: 58 of the prefix are left."""
    made = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "g" * 100}})
    assert len(made["metadata"]["name"]) == 63
    assert made["metadata"]["name"].startswith("g" * 58)


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/create.go")
async def test_a_name_goes_before_a_prefix(api):
    """generateName does nothing if there is a name."""
    made = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "gen-", "name": "given"}})
    assert made["metadata"]["name"] == "given"


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/create.go")
async def test_a_prefix_that_makes_no_name_is_refused(api):
    """The rule for names holds for the prefix as well; both fields are named."""
    status = await api.create(CONFIG_MAPS, {"metadata": {"generateName": "Not-"}}).refused(422, "Invalid")
    assert ("FieldValueInvalid", "metadata.generateName") in causes(status)


@source(NAMES)
async def test_names_are_free_in_other_kinds(api):
    """A name belongs to a kind in a namespace."""
    await api.create(CONFIG_MAPS, config_map("same"))
    await api.create(PODS, pod("same"))


@source(NAMES)
async def test_a_name_that_is_used_again_has_another_uid(api):
    """UIDs tell apart what had the same name."""
    first = await api.create(CONFIG_MAPS, config_map())
    await api.delete(CONFIG_MAPS, "m")
    second = await api.create(CONFIG_MAPS, config_map())
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_the_server_chooses_uid_and_time(api):
    """What a client says of them is forgotten at creation."""
    said = {"uid": "00000000-0000-0000-0000-000000000000", "creationTimestamp": "2001-01-01T00:00:00Z"}
    made = await api.create(CONFIG_MAPS, config_map(**said))
    assert made["metadata"]["uid"] != said["uid"]
    assert made["metadata"]["creationTimestamp"] != said["creationTimestamp"]


@source("staging/src/k8s.io/apiserver/pkg/storage/etcd3/store.go")
async def test_a_new_object_has_no_resource_version(api):
    """It is refused at creation, with a Status that has no usual reason."""
    reply = await api.create(CONFIG_MAPS, config_map(resourceVersion="1")).reply()
    assert reply.status == 500
    assert "resourceVersion should not be set on objects to be created" in reply.body["message"]


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_the_deletion_of_a_new_object_is_forgotten(api):
    """deletionTimestamp and deletionGracePeriodSeconds are the server's."""
    said = {"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}
    made = await api.create(CONFIG_MAPS, config_map(**said))
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds"} & set(made["metadata"])


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_the_old_self_link_is_never_set(api):
    """selfLink is dropped."""
    assert "selfLink" not in (await api.create(CONFIG_MAPS, config_map(selfLink="/x")))["metadata"]


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_a_namespace_in_the_body_must_be_that_of_the_path(api):
    """Another one is a bad request."""
    status = await api.create(CONFIG_MAPS, config_map(namespace="other")).refused(400, "BadRequest")
    assert "does not match the namespace" in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_a_namespace_left_out_of_the_body_is_that_of_the_path(api):
    """It is filled in."""
    assert (await api.create(CONFIG_MAPS, config_map()))["metadata"]["namespace"] == api.namespace


@source("staging/src/k8s.io/apiserver/pkg/registry/rest/meta.go")
async def test_a_cluster_wide_object_has_no_namespace(api):
    """One in its body is dropped."""
    body = {**meta(unique("pc"), namespace=api.namespace), "value": 1}
    assert "namespace" not in (await api.create(PRIORITY_CLASSES, body))["metadata"]


@source(META)
@pytest.mark.parametrize(
    ("labels", "rule"),
    [
        ({"k": "v" * 64}, "must be no more than 63 bytes"),
        ({"k": "a b"}, "a valid label must be an empty string or consist of alphanumeric characters"),
        ({"bad key": "v"}, "name part must consist of alphanumeric characters"),
        ({"/k": "v"}, "prefix part must be non-empty"),
        ({"Up.Per/k": "v"}, "prefix part a lowercase RFC 1123 subdomain must consist of"),
        ({"a/b/c": "v"}, "a valid label key must consist of"),
    ],
)
async def test_a_label_that_is_none(api, labels, rule):
    """Keys are qualified names, values are short."""
    status = await api.create(CONFIG_MAPS, config_map(labels=labels)).refused(422, "Invalid")
    assert causes(status)[0] == ("FieldValueInvalid", "metadata.labels")
    assert rule in status["message"]


@source(META)
async def test_a_label_may_be_empty(api):
    """An empty value is a value."""
    assert (await api.create(CONFIG_MAPS, config_map(labels={"k": ""})))["metadata"]["labels"] == {"k": ""}


@source(META)
async def test_annotations_have_a_size_altogether(api):
    """256 KiB for keys and values."""
    status = await api.create(CONFIG_MAPS, config_map(annotations={"k": "x" * 262144})).refused(422, "Invalid")
    assert causes(status) == [("FieldValueTooLong", "metadata.annotations")]


@source(META)
async def test_annotations_may_hold_any_text(api):
    """Blanks, lines and other letters are no matter."""
    text = "two\nlines and ümläut ☸"
    made = await api.create(CONFIG_MAPS, config_map(annotations={"example.com/k": text}))
    assert made["metadata"]["annotations"] == {"example.com/k": text}


@source(META)
async def test_an_annotation_key_is_a_qualified_name(api):
    """Its prefix and name follow the labels' rules, in lower case or not."""
    status = await api.create(CONFIG_MAPS, config_map(annotations={"a b": ""})).refused(422, "Invalid")
    assert causes(status)[0] == ("FieldValueInvalid", "metadata.annotations")


@source("pkg/apis/core/validation/validation.go")
async def test_a_finalizer_is_a_qualified_name(api):
    """One word alone is neither a standard finalizer nor somebody's."""
    status = await api.create(CONFIG_MAPS, config_map(finalizers=["word"])).refused(422, "Invalid")
    assert "metadata.finalizers" in causes(status)[0][1]


@source(META)
@pytest.mark.parametrize("missing", ["apiVersion", "kind", "name", "uid"])
async def test_an_owner_reference_is_whole(api, missing):
    """An owner without one of its four parts is refused."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}
    del owner[missing]
    status = await api.create(CONFIG_MAPS, config_map(ownerReferences=[owner])).refused(422, "Invalid")
    field = "version" if missing == "apiVersion" else missing
    assert f"metadata.ownerReferences.{field}" in [field for _, field in causes(status)] or missing in status["message"]


@source(META)
async def test_an_object_has_one_controller(api):
    """Two owners that both say controller: true are refused."""
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": name, "controller": True} for name in ("a", "b")
    ]
    status = await api.create(CONFIG_MAPS, config_map(ownerReferences=owners)).refused(422, "Invalid")
    assert "Only one reference can have Controller set to true" in status["message"]


@source(META)
async def test_an_event_owns_nothing(api):
    """Events are no owners."""
    owner = {"apiVersion": "v1", "kind": "Event", "name": "o", "uid": "u"}
    status = await api.create(CONFIG_MAPS, config_map(ownerReferences=[owner])).refused(422, "Invalid")
    assert "is disallowed from being an owner" in status["message"]


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager")
async def test_who_creates_owns_its_fields(api):
    """managedFields name the manager, how it wrote, and what."""
    made = await api.create(CONFIG_MAPS, config_map(), fieldManager="me")
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"], entry["apiVersion"]) == ("me", "Update", "v1")
    assert entry["fieldsType"] == "FieldsV1"
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:k": {}}}


@source("staging/src/k8s.io/apiserver/pkg/endpoints/handlers/create.go")
async def test_without_a_field_manager_it_is_the_programs_name(api):
    """The first part of the User-Agent is the manager."""
    reply = await api.ask("POST", api.at(CONFIG_MAPS), config_map(), headers={"user-agent": "prog/1.0 (x)"}).reply()
    assert [entry["manager"] for entry in reply.good()["metadata"]["managedFields"]] == ["prog"]


@source("staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go")
async def test_a_field_managers_name_has_a_length(api):
    """128 characters."""
    status = await api.create(CONFIG_MAPS, config_map(), fieldManager="x" * 129).refused(422, "Invalid")
    assert "fieldManager" in status["message"]


@source("pkg/apis/core/validation/validation.go")
async def test_a_service_of_a_bad_name(api):
    """Services are DNS labels: no dots."""
    status = await api.create(SERVICES, service("a.b")).refused(422, "Invalid")
    assert causes(status) == [("FieldValueInvalid", "metadata.name")]


@source("pkg/registry/core/event/strategy.go")
async def test_events_have_free_names(api):
    """Event names hold a dot and hexadecimal digits, as recorders make them."""
    event = {
        **meta("p.17f0a1b2c3d4e5f6"),
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace},
        "reason": "R",
    }
    assert (await api.create(EVENTS, event))["metadata"]["name"] == "p.17f0a1b2c3d4e5f6"
