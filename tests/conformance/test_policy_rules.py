"""What admission policies and their bindings may say."""

import asyncio

import pytest
from support.conformance.admission_policies import (
    MUTATING,
    MUTATING_BINDINGS,
    VALIDATING,
    VALIDATING_BINDINGS,
    applied,
    holds,
    on,
    patched,
    rule,
)
from support.conformance.api_client import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    REQUIRED,
    SECONDS,
    UNSUPPORTED,
    causes,
    unique,
)

from lastcall.adapters.kube.resources import dict_resource

source = pytest.mark.source
RULES = "pkg/apis/admissionregistration/validation/validation.go"
DEFAULTS = "pkg/apis/admissionregistration/v1/defaults.go"
STRATEGY = "pkg/registry/admissionregistration/validatingadmissionpolicy/strategy.go"
COMPILER = "staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/compile.go"


def policy(**spec):
    return {"metadata": {"name": unique("policy")}, "spec": {"matchConstraints": on(), **spec}}


def validating(*validations, **spec):
    return policy(validations=[*validations], **spec)


async def refused(api, *validations, **spec):
    return causes(await api.create(VALIDATING, validating(*validations, **spec), dryRun="All").refused(422, "Invalid"))


async def why(api, *validations, **spec):
    status = await api.create(VALIDATING, validating(*validations, **spec), dryRun="All").refused(422, "Invalid")
    return [one["message"] for one in status["details"]["causes"]]


@source(DEFAULTS)
async def test_defaults_of_policies(api):
    """A policy that fails refuses; it matches equivalent resources, in all namespaces."""
    made = await api.create(VALIDATING, validating(holds("true")), dryRun="All")
    assert made["spec"]["failurePolicy"] == "Fail"
    constraints = made["spec"]["matchConstraints"]
    assert (constraints["matchPolicy"], constraints["namespaceSelector"]) == ("Equivalent", {})
    assert constraints["resourceRules"][0]["scope"] == "*"
    assert made["metadata"]["generation"] == 1


@source(STRATEGY)
async def test_the_generation_counts_changes_of_the_spec(api):
    """Not those of labels, nor of the status, which has a subresource."""
    body = validating(holds("true"))
    name = (await api.create(VALIDATING, body))["metadata"]["name"]
    await api.patch(VALIDATING, name, {"metadata": {"labels": {"a": "b"}}})
    changed = await api.patch(VALIDATING, name, {"status": {"observedGeneration": 7}}, sub="status")
    assert (changed["metadata"]["generation"], changed["status"]["observedGeneration"]) == (1, 7)
    changed = await api.patch(VALIDATING, name, {"spec": {"failurePolicy": "Ignore"}})
    assert changed["metadata"]["generation"] == 2
    assert changed["status"]["observedGeneration"] == 7


@source(RULES)
async def test_a_policy_must_do_something(api):
    """It has validations or annotations, and rules."""
    assert await refused(api) == [(REQUIRED, "spec.validations"), (REQUIRED, "spec.auditAnnotations")]
    assert await refused(api, holds("true"), matchConstraints=None) == [(REQUIRED, "spec.matchConstraints")]
    assert await refused(api, holds("true"), matchConstraints={}) == [(REQUIRED, "spec.matchConstraints.resourceRules")]


@source(RULES)
async def test_rules_of_policies(api):
    """As those of webhooks, with names."""
    constraints = on(rule("configmaps", resourceNames=["a", "a", "x/y"]), matchPolicy="Z")
    constraints["excludeResourceRules"] = [rule("configmaps", operations=["X"])]
    assert await refused(api, holds("true"), matchConstraints=constraints, failurePolicy="Y") == [
        (UNSUPPORTED, "spec.failurePolicy"),
        (UNSUPPORTED, "spec.matchConstraints.matchPolicy"),
        (DUPLICATE, "spec.matchConstraints.resourceRules[0].resourceNames[1]"),
        (INVALID, "spec.matchConstraints.resourceRules[0].resourceNames[2]"),
        (UNSUPPORTED, "spec.matchConstraints.excludeResourceRules[0].operations[0]"),
    ]


@source(COMPILER)
@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("1", "int"),
        ("request.name", "string"),
        ("object.metadata.name", "dyn"),
        ("object.?spec.on.orValue(false)", "dyn"),
        ("true ? true : object.x", "dyn"),
        ("request.userInfo.extra", "map(string, list(string))"),
        ("request.userInfo.extra['x']", "list(string)"),
        ("1 + object.x", "int"),
        ("object.list.map(x, x.name)", "list(dyn)"),
        ("[]", "list(dyn)"),
        ("authorizer.requestResource.check('get')", "kubernetes.authorization.Decision"),
        ("duration('1s')", "google.protobuf.Duration"),
        ("request.kind", "kubernetes.GroupVersionKind"),
        ("size(object.x)", "int"),
        ("-object.x", "dyn"),
        ("null", "null_type"),
    ],
)
async def test_validations_are_of_type_bool(api, expression, type_):
    """Also what has no type that is known is refused."""
    assert await why(api, holds(expression)) == [
        f'Invalid value: "{expression}": must evaluate to bool but got {type_}'
    ]


@source(COMPILER)
@pytest.mark.parametrize(
    "expression",
    [
        "request.dryRun",
        "!object.x",
        "object.x.all(y, y)",
        "object.labels.exists(l, l == 'x')",
        "'a' in object.x || has(object.y)",
        "authorizer.group('').resource('pods').check('get').allowed()",
        "namespaceObject.metadata.labels['a'] == 'b'",
        "object.?spec.on.orValue(false) == true",
        "object.x > 1 ? object.y == 'a' : !request.dryRun",
    ],
)
async def test_expressions_that_are_bool(api, expression):
    """They are taken."""
    await api.create(VALIDATING, validating(holds(expression)), dryRun="All")


@source(COMPILER)
@pytest.mark.parametrize(
    ("expression", "column", "wrong"),
    [
        ("foo", 1, "undeclared reference to 'foo' (in container '')"),
        ("params.x == 1", 1, "undeclared reference to 'params' (in container '')"),
        ("variables.x == 1", 1, "undeclared reference to 'variables' (in container '')"),
        ("request.nope == 1", 8, "undefined field 'nope'"),
        ("request.userInfo.username.nope == 1", 26, "type 'string' does not support field selection"),
        ("[1, 'a'].size() == 2", 5, "expected type 'int' but found 'string'"),
        ("{'a': 'b', 'c': object.x}.size() == 2", 23, "expected type 'string' but found 'dyn'"),
    ],
)
async def test_expressions_that_cannot_be_compiled(api, expression, column, wrong):
    """The answer shows where."""
    [said] = await why(api, holds(expression))
    dots = "." * (column - 1)
    report = f"compilation failed: ERROR: <input>:1:{column}: {wrong}\n | {expression}\n | {dots}^"
    assert said == f'Invalid value: "{expression}": {report}'


@source(RULES)
async def test_variables_of_policies(api):
    """They are names, and can use those before them."""
    variables = [
        {"name": "a", "expression": "1"},
        {"name": "b", "expression": "variables.a + 1"},
        {"name": "in", "expression": ""},
        {"name": "", "expression": "1"},
        {"name": "c", "expression": "variables.nope"},
    ]
    found = await refused(api, holds("variables.b == 2"), holds("variables.a"), variables=variables)
    assert found == [
        (INVALID, "spec.variables[2].name"),
        (REQUIRED, "spec.variables[2].expression"),
        (REQUIRED, "spec.variables[3].name"),
        (INVALID, "spec.variables[4].expression"),
        (INVALID, "spec.validations[1].expression"),
    ]


@source(RULES)
async def test_messages_and_reasons(api):
    """A message is one line; an expression for it is a string and knows no authorizer; few reasons are known."""
    found = await refused(
        api,
        holds("true", message="  "),
        holds("true", message="a\nb"),
        holds("true", messageExpression="1"),
        holds("true", messageExpression="authorizer.path('/').check('get').reason()"),
        holds("true", reason="Unauthorized"),
        holds(" "),
    )
    assert found == [
        (INVALID, "spec.validations[0].message"),
        (INVALID, "spec.validations[1].message"),
        (INVALID, "spec.validations[2].messageExpression"),
        (INVALID, "spec.validations[3].messageExpression"),
        (UNSUPPORTED, "spec.validations[4].reason"),
        (REQUIRED, "spec.validations[5].expression"),
    ]


@source(RULES)
async def test_audit_annotations(api):
    """Strings or nothing, each with a key of its own."""
    annotations = [
        {"key": "a", "valueExpression": "'x'"},
        {"key": "a", "valueExpression": "null"},
        {"key": "b", "valueExpression": "1"},
        {"key": "b b", "valueExpression": "'x'"},
        {"key": "c", "valueExpression": ""},
    ]
    assert await refused(api, auditAnnotations=annotations) == [
        (DUPLICATE, "spec.auditAnnotations[1].key"),
        (INVALID, "spec.auditAnnotations[2].valueExpression"),
        (INVALID, "spec.auditAnnotations[3].key"),
        (REQUIRED, "spec.auditAnnotations[4].valueExpression"),
    ]


@source(RULES)
async def test_kinds_of_parameters(api):
    """With them, expressions know ``params``."""
    assert await refused(api, holds("true"), paramKind={}) == [
        (REQUIRED, "spec.paramKind.apiVersion"),
        (REQUIRED, "spec.paramKind.kind"),
    ]
    assert await refused(api, holds("true"), paramKind={"apiVersion": "a/b/c", "kind": "Bad_Kind"}) == [
        (INVALID, "spec.paramKind.apiVersion"),
        (INVALID, "spec.paramKind.kind"),
    ]
    good = {"apiVersion": "v1", "kind": "ConfigMap"}
    await api.create(VALIDATING, validating(holds("params.x == 1"), paramKind=good), dryRun="All")


@source(RULES)
async def test_mutations(api):
    """Each has a patch of its type, whose expression makes it."""

    async def said(*mutations, **spec):
        constraints = on(rule("configmaps", operations=["CREATE"]))
        spec = {"reinvocationPolicy": "Never", "matchConstraints": constraints, **spec}
        body = policy(**spec, mutations=[*mutations])
        return causes(await api.create(MUTATING, body, dryRun="All").refused(422, "Invalid"))

    good = applied("Object{}")
    assert await said() == [(REQUIRED, "spec.mutations")]
    assert await said(good, reinvocationPolicy="X") == [(UNSUPPORTED, "spec.reinvocationPolicy")]
    assert await said(
        {"patchType": "X"}, {"patchType": "JSONPatch"}, {**good, **patched("[]"), "patchType": "JSONPatch"}
    ) == [
        (UNSUPPORTED, "spec.mutations[0].patchType"),
        (REQUIRED, "spec.mutations[1].jsonPatch"),
        (INVALID, "spec.mutations[2].jsonPatch.expression"),
        (INVALID, "spec.mutations[2].applyConfiguration"),
    ]
    wrong = [applied("object"), applied("{'a': 1}"), patched("[1]"), patched("Object{}")]
    assert [field.partition("]")[0][-1] for _, field in await said(*wrong)] == ["0", "1", "2", "3"]
    deleting = on(rule("configmaps", operations=["CREATE", "DELETE"]))
    assert await said(good, matchConstraints=deleting) == [
        (UNSUPPORTED, "spec.matchConstraints.resourceRules.operations")
    ]


@source(RULES)
async def test_bindings_of_policies(api):
    """They name a policy, and what to do."""

    async def said(resource=VALIDATING_BINDINGS, **spec):
        body = {"metadata": {"name": unique("policy")}, "spec": spec}
        return causes(await api.create(resource, body, dryRun="All").refused(422, "Invalid"))

    deny = {"policyName": "p", "validationActions": ["Deny"]}
    assert await said() == [(REQUIRED, "spec.policyName"), (REQUIRED, "spec.validationActions")]
    assert await said(policyName="P!", validationActions=["Deny"]) == [(INVALID, "spec.policyName")]
    assert await said(**{**deny, "validationActions": ["Deny", "Warn"]}) == [(INVALID, "spec.validationActions")]
    assert await said(**{**deny, "validationActions": ["X", "X"]}) == [
        (UNSUPPORTED, "spec.validationActions[0]"),
        (UNSUPPORTED, "spec.validationActions[1]"),
        (DUPLICATE, "spec.validationActions[1]"),
    ]
    both = {"name": "a", "selector": {}, "parameterNotFoundAction": "X"}
    assert await said(**deny, paramRef=both) == [
        (FORBIDDEN, "spec.paramRef.name"),
        (FORBIDDEN, "spec.paramRef.selector"),
        (UNSUPPORTED, "spec.paramRef.parameterNotFoundAction"),
    ]
    assert await said(**deny, paramRef={}) == [
        (REQUIRED, "spec.paramRef"),
        (REQUIRED, "spec.paramRef.parameterNotFoundAction"),
    ]
    assert await said(MUTATING_BINDINGS) == [(REQUIRED, "spec.policyName")]


@source("pkg/registry/admissionregistration/validatingadmissionpolicy/authz.go")
async def test_who_uses_parameters_must_be_allowed_to_read_them(api):
    """Else a policy would tell what is in a Secret."""
    user, name = unique("user"), unique("role")
    group, access = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
    plurals = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"]
    rules = [{"apiGroups": [group], "resources": plurals, "verbs": ["create"]}]
    await api.create(dict_resource(access, "v1", "clusterroles"), {"metadata": {"name": name}, "rules": rules})
    role = {"kind": "ClusterRole", "name": name, "apiGroup": access}
    bound = {"subjects": [{"kind": "User", "name": user, "apiGroup": access}], "roleRef": role}
    await api.create(dict_resource(access, "v1", "clusterrolebindings"), {"metadata": {"name": name}, **bound})
    headers = {"impersonate-user": user}

    async def post(what, body):
        async with asyncio.timeout(SECONDS):  # a real server hears of roles a moment later
            while True:
                reply = await api.ask("POST", api.at(what), body, headers=headers, dryRun="All").reply()
                if reply.status != 403:
                    return reply
                await asyncio.sleep(0.1)

    assert (await post(VALIDATING, validating(holds("true")))).status == 201
    with_params = validating(holds("true"), paramKind={"apiVersion": "v1", "kind": "Secret"})
    status = (await post(VALIDATING, with_params)).refused(422, "Invalid")
    assert causes(status) == [(FORBIDDEN, "spec.paramKind")]
    assert (
        'must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)'
        in status["message"]
    )
    await api.create(VALIDATING, with_params)
    reference = {"name": "x", "parameterNotFoundAction": "Deny"}
    policy_name = with_params["metadata"]["name"]
    spec = {"policyName": policy_name, "validationActions": ["Deny"], "paramRef": reference}
    status = (await post(VALIDATING_BINDINGS, {"metadata": {"name": name}, "spec": spec})).refused(422, "Invalid")
    assert causes(status) == [(FORBIDDEN, "spec.paramRef")]
    assert 'does not have "get" permission on the object referenced by paramRef' in status["message"]
