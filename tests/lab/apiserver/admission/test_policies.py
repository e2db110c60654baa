"""Expressions of admission policies: what the lab's library cannot do itself, and what the audit is told."""

import json
from random import Random

import pytest

from lastcall.adapters.host.clock import SystemClock
from lastcall_lab.apiserver import ApiServer
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.admission.policies import cel_objects
from lastcall_lab.apiserver.admission.policies.cel_authorizer import CelAuthorizer
from lastcall_lab.apiserver.admission.policies.expressions import PolicyScope
from lastcall_lab.apiserver.authorization.attributes import AccessAttributes, AccessDecision
from lastcall_lab.apiserver.cel import evaluator
from lastcall_lab.apiserver.cel.admission_variables import DeclaredVariables
from lastcall_lab.apiserver.routing import request_selectors
from lastcall_lab.apiserver.values.request import Request, UserInfo

DEPLOYMENT = {"metadata": {"labels": {"a/b": "x"}}, "spec": {"replicas": 3, "paused": None}}
VARIABLES = {"double": "object.spec.replicas * 2", "sum": "variables.double + 1", "bad": "object.nothing.x"}


def scope():
    return PolicyScope({"object": DEPLOYMENT, "oldObject": None}, VARIABLES, None)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("variables.sum", 7),
        ("has(variables.sum) && variables.double == 6", True),
        ("true || variables.bad", True),
        ("has(oldObject.spec)", False),
        ("has(object.spec.replicas) && !has(object.spec.nope)", True),
        ("has(object.spec.paused) && object.spec.paused == null", True),
        ("'variables.sum' + 'Object{a: 1}' + 'has(a.b)'", "variables.sumObject{a: 1}has(a.b)"),
        ("[1, 2].map(i, i + variables.double)", [7, 8]),
        ("jsonpatch.escapeKey('a/b~c')", "a~1b~0c"),
        ("Object{}", {"@type": "Object"}),
        ("Object{a: Object.a{b: [Object.a.b{c: 1}], d: {'e': 'f'}}}.a.d.e", "f"),
        ("Object{?a: object.?metadata.?nope, ?b: object.?spec.?replicas}", {"@type": "Object", "b": 3}),
        ("Object . a { b : 1 }", {"@type": "Object.a", "b": 1}),
    ],
)
def test_expressions(expression, value):
    assert scope().evaluate(expression) == value


def test_what_the_authorizer_is_asked():
    """Every part of the question; RBAC does not look at all of them."""
    asked = []
    me = UserInfo("me")
    config_maps = next(one for one in ApiServer(SystemClock(), Random(1)).scheme if one.plural == "configmaps")
    attributes = AdmissionAttributes("UPDATE", config_maps, "", "here", "m", me, {}, {}, False, {})  # noqa: FBT003  (as they come)

    def authorize(access):
        asked.append(access)
        return AccessDecision(access.user is me, "since it is me")

    one = PolicyScope({}, {}, CelAuthorizer(authorize, attributes))
    question = "authorizer.group('g').resource('r').subresource('s').namespace('n').name('x').fieldSelector('a.b=c')"
    assert one.evaluate(f"{question}.check('v').allowed()") is True
    assert one.evaluate("authorizer.path('/p').check('v').reason()") == "since it is me"
    assert one.evaluate("authorizer.requestResource.check('v').allowed()") is True
    assert one.evaluate("authorizer.serviceAccount('n', 'a').path('/p').check('v').allowed()") is False
    resource, path, own, account = (one._replace(terms=tuple(one.terms)) for one in asked)
    assert resource == AccessAttributes(
        me, "v", "g", "r", "s", "n", "x", "", tuple(request_selectors.parse_field_terms("a.b=c"))
    )
    assert path == AccessAttributes(me, "v", path="/p")
    assert own == AccessAttributes(me, "v", "", "configmaps", "", "here", "m")
    assert account.user.name == "system:serviceaccount:n:a"


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("object.nothing", "no such key: nothing"),
        ("oldObject.spec", "no such key: spec"),
        ("variables.bad", 'composited variable "bad" fails to evaluate: no such key: nothing'),
    ],
)
def test_expressions_without_a_value(expression, why):
    with pytest.raises(evaluator.CelError) as error:
        scope().evaluate(expression)
    assert str(error.value) == f"expression '{expression}' resulted in error: {why}"


def test_a_variable_is_evaluated_once():
    counted = []
    one = PolicyScope({}, {"x": "1"}, None)
    evaluate = one._value
    one._value = lambda expression: counted.append(expression) or evaluate(expression)
    assert one.evaluate("variables.x + variables.x + variables.x") == 3
    assert counted.count("1") == 1


def test_types_that_stand_in_a_wrong_place():
    made = scope().evaluate("Object{spec: Object.spec{a: [Object.spec.b{c: 1}]}}")
    [said] = cel_objects.type_mismatches(made)
    assert said.startswith(
        'unexpected type name "Object.spec.b", expected "Object.spec.a", which matches field name path'
    )


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("variables.n + 1", "int"),
        ("variables.n > 1 ? 'a' : string(variables.n)", "string"),
        ("object.a ? [] : [JSONPatch{op: 'add', path: '/x', value: 1}]", "list(JSONPatch)"),
        ("object.l.map(x, JSONPatch{op: 'remove', path: '/' + x})", "list(JSONPatch)"),
        ("has(object.x) ? Object{} : Object{a: Object.a{}}", "Object"),
        ("{'a': [1, 2]}['a'][0]", "int"),
        ("optional.of('x').orValue('y')", "string"),
        ("namespaceObject.metadata.labels.x", "string"),
        ("object.containers.filter(c, c.x == 1)", "list(dyn)"),
        ("'a' // comment", "string"),
        ("no.such.function('x')", None),
    ],
)
def test_types(expression, type_):
    declared = DeclaredVariables(patches=True, composed={"n": "int"})
    wrong, found = declared.check(expression)
    assert found == type_
    assert bool(wrong) == (type_ is None)


async def test_the_audit_is_told():
    server = ApiServer(SystemClock(), Random(1))

    async def post(path, body):
        response = await server.handle(Request.of("POST", path, body=json.dumps(body).encode()))
        assert response.status == 201, response.body

    group = "/apis/admissionregistration.k8s.io/v1/"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "true"}, {"expression": "false", "message": "no"}],
        "auditAnnotations": [
            {"key": "who", "valueExpression": "'by ' + request.userInfo.username"},
            {"key": "none", "valueExpression": "null"},
        ],
    }
    await post(f"{group}validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    bound = {"policyName": "p", "validationActions": ["Audit"]}
    await post(f"{group}validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})
    await post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}})
    said = dict(server.audit.records[-1].annotations)
    [failure] = json.loads(said.pop("validation.policy.admission.k8s.io/validation_failure"))
    assert failure == {
        "message": "no",
        "policy": "p",
        "binding": "b",
        "expressionIndex": 1,
        "validationActions": ["Audit"],
    }
    assert said == {"p/who": "by kubernetes-admin"}
    assert server.audit.records[-2].annotations == {}


async def test_mutating_policies_are_applied_by_their_names():
    """Kubernetes promises no order; the lab has one, so that what it makes is the same each time."""
    server = ApiServer(SystemClock(), Random(1))

    async def post(path, body):
        response = await server.handle(Request.of("POST", path, body=json.dumps(body).encode()))
        assert response.status == 201, response.body
        return json.loads(response.body)

    group = "/apis/admissionregistration.k8s.io/v1/"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    for name in ("c", "a", "b"):
        expression = f"[JSONPatch{{op: 'replace', path: '/data/k', value: object.data.k + '{name}'}}]"
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            "reinvocationPolicy": "Never",
        }
        await post(f"{group}mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec})
        bound = {"metadata": {"name": name}, "spec": {"policyName": name}}
        await post(f"{group}mutatingadmissionpolicybindings", bound)
    made = await post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "m"}, "data": {"k": "-"}})
    assert made["data"] == {"k": "-abc"}
