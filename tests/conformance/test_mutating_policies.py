"""MutatingAdmissionPolicies: what they make of objects."""

import pytest
from support.conformance.admission_policies import applied, holds, on, patched, rule
from support.conformance.objects import config_map, workload

from lastcall.adapters.kube.resources import CONFIG_MAPS, DEPLOYMENTS

source = pytest.mark.source
SMD = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/smd.go"
JSON = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch/json_patch.go"
DISPATCHER = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go"
GENERIC = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go"
POD = "Object.spec.template.spec"
DEPLOYED = on(rule("deployments", group="apps", operations=["CREATE"]))


def in_pod(inner):
    """An apply configuration of a Deployment's pods."""
    template = f"Object.spec.template{{spec: {POD}{{{inner}}}}}"
    return applied(f"Object{{spec: Object.spec{{template: {template}}}}}")


@source(SMD)
async def test_fields_are_set(api, policies):
    """Maps are merged, and the object is as a client would have written it: with its defaults."""
    await policies.mutate(
        applied("Object{metadata: Object.metadata{labels: {'set': 'yes'}}, spec: Object.spec{replicas: 3}}"),
        matchConstraints=DEPLOYED,
    )
    body = workload("w")
    body["metadata"]["labels"] = {"mine": "yes"}
    made = await api.create(DEPLOYMENTS, body, dryRun="All")
    assert made["metadata"]["labels"] == {"mine": "yes", "set": "yes"}
    assert (made["spec"]["replicas"], made["spec"]["revisionHistoryLimit"]) == (3, 10)


@source(SMD)
async def test_items_of_lists_are_merged_by_their_keys(api, policies):
    """A hook and a longer grace period for a container that is there, and a container that is not."""
    hook = f"{POD}.containers.lifecycle"
    sleep = f"{hook}.preStop{{sleep: {hook}.preStop.sleep{{seconds: 3}}}}"
    await policies.mutate(
        in_pod(
            f"containers: [{POD}.containers{{name: 'c', lifecycle: {hook}{{preStop: {sleep}}}}}],"
            f"initContainers: [{POD}.initContainers{{name: 'i', image: 'i:1'}}],"
            "terminationGracePeriodSeconds: object.spec.template.spec.?terminationGracePeriodSeconds.orValue(30) + 3"
        ),
        matchConstraints=DEPLOYED,
    )
    made = (await api.create(DEPLOYMENTS, workload("w"), dryRun="All"))["spec"]["template"]["spec"]
    [container] = made["containers"]
    assert container["lifecycle"] == {"preStop": {"sleep": {"seconds": 3}}}
    assert container["image"] == "registry.invalid/nothing:1"
    assert [one["imagePullPolicy"] for one in made["initContainers"]] == ["IfNotPresent"]
    assert made["terminationGracePeriodSeconds"] == 33


@source(SMD)
@pytest.mark.parametrize(
    ("mutation", "why"),
    [
        (
            applied("Object{spec: Object.wrong{replicas: 1}}"),
            (
                'type mismatch: unexpected type name "Object.wrong", expected "Object.spec", which matches field name path'
                " from root Object type"
            ),
        ),
        (
            applied("Object{spec: Object.spec{nope: 1}}"),
            (
                "error applying patch: failed to convert patch object to typed object: .spec.nope: field not declared in"
                " schema"
            ),
        ),
        (
            applied("Object{spec: Object.spec{replicas: 'x'}}"),
            (
                "error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int"
                " or float), got string"
            ),
        ),
        (
            applied("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'x': 'y'}}}}"),
            (
                "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs:"
                " .spec.selector"
            ),
        ),
        (
            patched("[JSONPatch{op: 'remove', path: '/spec/nope'}]"),
            "JSON Patch: error in remove for path: '/spec/nope': Unable to remove nonexistent key: nope: missing value",
        ),
    ],
)
async def test_mutations_that_cannot_be(api, policies, mutation, why):
    """The request is refused with 403 and the reason Invalid."""
    name = await policies.mutate(mutation, matchConstraints=DEPLOYED)
    status = await api.create(DEPLOYMENTS, workload("w"), dryRun="All").refused(403, "Invalid")
    assert status["message"] == f"policy '{name}' with binding '{name}' denied request: {why}"
    assert status["details"]["causes"] == [{"message": status["message"]}]


@source(DISPATCHER)
async def test_a_mutation_that_fails_open(api, policies):
    """It is passed over; the ones after it are done."""
    await policies.mutate(
        patched("[JSONPatch{op: 'remove', path: '/nothing'}]"),
        patched("[JSONPatch{op: 'add', path: '/data/second', value: 'done'}]"),
        failurePolicy="Ignore",
    )
    assert (await api.create(CONFIG_MAPS, config_map()))["data"] == {"k": "v", "second": "done"}


@source(JSON)
async def test_json_patches(api, policies):
    """Operations in their order; keys can be escaped; one whose test fails does nothing."""
    await policies.mutate(
        patched(
            "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'e.com/a': 'b'}},"
            " JSONPatch{op: 'replace', path: '/metadata/annotations/' + jsonpatch.escapeKey('e.com/a'), value: 'c'},"
            " JSONPatch{op: 'copy', from: '/data/k', path: '/data/l'}]"
        ),
        patched("[JSONPatch{op: 'test', path: '/data/k', value: 'other'}, JSONPatch{op: 'remove', path: '/data/k'}]"),
        patched("object.data.k == 'v' ? [JSONPatch{op: 'add', path: '/data/m', value: 'n'}] : []"),
    )
    made = await api.create(CONFIG_MAPS, config_map())
    assert made["metadata"]["annotations"] == {"e.com/a": "c"}
    assert made["data"] == {"k": "v", "l": "v", "m": "n"}


@source(JSON)
async def test_a_patch_can_hold_objects(api, policies):
    """The object becomes a field of another."""
    value = f"{POD}.containers{{name: 'second', image: 'i:1'}}"
    path = "/spec/template/spec/containers/-"
    await policies.mutate(
        patched(f"[JSONPatch{{op: 'add', path: '{path}', value: {value}}}]"), matchConstraints=DEPLOYED
    )
    made = await api.create(DEPLOYMENTS, workload("w"), dryRun="All")
    assert [one["name"] for one in made["spec"]["template"]["spec"]["containers"]] == ["c", "second"]


@source(DISPATCHER)
async def test_a_match_condition_of_a_mutation(api, policies):
    """What it excludes stays as it is."""
    only = {"name": "only", "expression": "object.metadata.name.startsWith('x')"}
    await policies.mutate(patched("[JSONPatch{op: 'add', path: '/data/seen', value: 'yes'}]"), matchConditions=[only])
    assert (await api.create(CONFIG_MAPS, config_map("a")))["data"] == {"k": "v"}
    assert (await api.create(CONFIG_MAPS, config_map("x")))["data"] == {"k": "v", "seen": "yes"}


@source("https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/")
async def test_validation_sees_what_mutation_has_made(api, policies):
    """A ValidatingAdmissionPolicy judges the object as it is going to be stored."""
    await policies.mutate(patched("[JSONPatch{op: 'add', path: '/data/made', value: object.metadata.name}]"))
    await policies.validate(holds("!has(object.data.made)", message="made"))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert status["message"].endswith("denied request: made")


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/reinvocationcontext.go")
@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
async def test_reinvocation(api, policies, again):
    """A policy that was too early is asked once more, if it wants to be, after another has changed the object."""
    late = "has(object.data.late) && !has(object.data.seen)"
    see = f"{late} ? [JSONPatch{{op: 'add', path: '/data/seen', value: 'yes'}}] : []"
    add = "has(object.data.late) ? [] : [JSONPatch{op: 'add', path: '/data/late', value: 'yes'}]"
    await policies.mutate(patched(see), reinvocationPolicy=again)
    await policies.mutate(patched(add), reinvocationPolicy=again)
    made = await api.create(CONFIG_MAPS, config_map())
    assert "late" in made["data"]
    if again == "IfNeeded":
        assert "seen" in made["data"]


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/mutating/reinvocationcontext.go")
@pytest.mark.parametrize("again", ["Never", "IfNeeded"])
async def test_how_often_a_policy_is_asked(api, policies, again):
    """Once each; with IfNeeded the first of two that change the object is asked once more, and none a third time."""
    for key in ("a", "b"):
        count = f"'x' + object.data[?'{key}'].orValue('')"
        add = f"[JSONPatch{{op: 'add', path: '/data/{key}', value: {count}}}]"
        await policies.mutate(patched(add), reinvocationPolicy=again)
    made = (await api.create(CONFIG_MAPS, config_map()))["data"]
    asked = sorted(len(made[key]) for key in ("a", "b"))
    assert asked == [1, 1] if again == "Never" else max(asked) == 2


@source(DISPATCHER)
async def test_mutations_see_those_before_them(api, policies):
    """They are applied in the order of the policy."""
    await policies.mutate(
        patched("[JSONPatch{op: 'replace', path: '/data/k', value: object.data.k + '1'}]"),
        patched("[JSONPatch{op: 'replace', path: '/data/k', value: object.data.k + '2'}]"),
    )
    assert (await api.create(CONFIG_MAPS, config_map()))["data"] == {"k": "v12"}


@source(DISPATCHER)
@pytest.mark.parametrize("policy", ["Ignore", "Fail"])
async def test_a_match_condition_of_a_mutation_that_has_no_value(api, policies, policy):
    """With Ignore the object stays as it is; with Fail the request is refused, with the reason."""
    fails = {"name": "fails", "expression": "object.data.nothing == 'x'"}
    add = patched("[JSONPatch{op: 'add', path: '/data/seen', value: 'yes'}]")
    name = await policies.mutate(add, matchConditions=[fails], failurePolicy=policy)
    asked = api.create(CONFIG_MAPS, config_map())
    if policy == "Ignore":
        assert (await asked)["data"] == {"k": "v"}
        return
    status = await asked.refused(403, "Invalid")
    assert status["message"].startswith(
        f"policy '{name}' with binding '{name}' denied request: expression 'object.data.n"
    )


@source(GENERIC)
async def test_mutations_can_ask_the_authorizer(api, policies):
    """In their conditions and in their expressions."""
    may = "authorizer.requestResource.check('create').allowed()"
    other = f"authorizer.serviceAccount('{api.namespace}', 'powerless').group('').resource('secrets').check('get')"
    add = "[JSONPatch{op: 'add', path: '/data/%s', value: %s ? 'yes' : 'no'}]"
    only = {"name": "may", "expression": may}
    await policies.mutate(
        patched(add % ("me", may)), patched(add % ("other", f"{other}.allowed()")), matchConditions=[only]
    )
    made = await api.create(CONFIG_MAPS, config_map())
    assert made["data"] == {"k": "v", "me": "yes", "other": "no"}


OTHER_TYPES = {
    "text for a number": (
        "spec/replicas', value: 'x'",
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    "a number for text": (
        "metadata/annotations', value: {'a': 7}",
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type string",
    ),
    "a field that nobody knows": ("spec/nonsense', value: 'x'", 'strict decoding error: unknown field "spec.nonsense"'),
}


@source(JSON)
@pytest.mark.parametrize(("added", "why"), OTHER_TYPES.values(), ids=OTHER_TYPES)
async def test_what_mutations_make_has_the_types_of_its_kind(api, policies, added, why):
    """Nothing else is admitted: the error is that of the decoder."""
    await policies.mutate(patched(f"[JSONPatch{{op: 'add', path: '/{added}}}]"), matchConstraints=DEPLOYED)
    status = await api.create(DEPLOYMENTS, workload("w"), dryRun="All").refused(500, "InternalError")
    assert status["message"] == f"Internal error occurred: {why}"


@source(JSON)
async def test_what_mutations_make_is_validated(api, policies):
    """As if the client had sent it."""
    few = patched("[JSONPatch{op: 'add', path: '/spec/replicas', value: -1}]")
    await policies.mutate(few, matchConstraints=DEPLOYED)
    status = await api.create(DEPLOYMENTS, workload("w"), dryRun="All").refused(422, "Invalid")
    assert [one["field"] for one in status["details"]["causes"]] == ["spec.replicas"]
