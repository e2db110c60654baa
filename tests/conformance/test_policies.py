"""ValidatingAdmissionPolicies: what they deny, and whom they concern."""

import asyncio

import pytest
from support.conformance.admission_policies import VALIDATING, holds, on, rule
from support.conformance.api_client import SECONDS, unique
from support.conformance.objects import config_map, meta, pod

from lastcall.adapters.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, dict_resource

source = pytest.mark.source
DISPATCHER = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go"
VALIDATOR = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/validator.go"
GENERIC = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go"
MATCHING = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/matching/matching.go"
COMPOSITION = "staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/composition.go"
ACTIVATION = "staging/src/k8s.io/apiserver/pkg/admission/plugin/cel/activation.go"
AUTHZ = "staging/src/k8s.io/apiserver/pkg/cel/library/authz.go"
PARAMS = {"apiVersion": "v1", "kind": "ConfigMap"}
ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
ROLES = dict_resource("rbac.authorization.k8s.io", "v1", "roles")
ROLE_BINDINGS = dict_resource("rbac.authorization.k8s.io", "v1", "rolebindings")


def denial(name, why):
    """What is said of a request that a policy denies."""
    return f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: {why}"


@source(DISPATCHER)
async def test_a_policy_denies(api, policies):
    """422 with the policy, the binding, and the validation that does not hold; nothing is created."""
    name = await policies.validate(holds("has(object.data) && object.data.k == 'good'"))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    said = denial(name, "failed expression: has(object.data) && object.data.k == 'good'")
    assert status["message"] == f'configmaps "m" is forbidden: {said}'
    assert status["details"]["causes"] == [{"message": said}]
    assert await api.gone(CONFIG_MAPS, "m")
    await api.create(CONFIG_MAPS, config_map(data={"k": "good"}))


@source(VALIDATOR)
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"message": " be good "}, "be good"),
        ({"message": "no", "messageExpression": "'not ' + object.metadata.name"}, "not m"),
        ({"message": "no", "messageExpression": "string(object.nothing)"}, "no"),
        ({"message": "no", "messageExpression": "'a\\nb'"}, "no"),
        ({"messageExpression": "'  '"}, "failed expression: false"),
    ],
)
async def test_what_a_denial_says(api, policies, more, said):
    """The value of its expression if that is one line of text, else its message, else the validation."""
    name = await policies.validate(holds("false", **more))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert status["message"].endswith(denial(name, said))


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/validating/policy_decision.go")
@pytest.mark.parametrize(("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)])
async def test_the_reason_of_a_validation(api, policies, reason, code):
    """It decides the code."""
    await policies.validate(holds("false", reason=reason))
    await api.create(CONFIG_MAPS, config_map()).refused(code, reason)


@source(DISPATCHER)
async def test_the_first_violation_is_the_answer(api, policies):
    """Later ones are not told."""
    name = await policies.validate(holds("true"), holds("false", message="first"), holds("false", message="second"))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert status["message"].endswith(denial(name, "first"))
    assert len(status["details"]["causes"]) == 1


@source(DISPATCHER)
async def test_a_warning(api, policies):
    """A binding that warns lets the request pass."""
    name = await policies.validate(holds("false", message="careful"), actions=["Warn", "Audit"])
    reply = await api.create(CONFIG_MAPS, config_map()).reply()
    said = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': careful"
    assert (reply.status, reply.warnings) == (201, [said])


@source(VALIDATOR)
async def test_an_expression_without_a_value(api, policies):
    """With failurePolicy Fail it denies, and says why; with Ignore it is passed over."""
    expression = "object.data.nothing == 'x'"
    ignored = await policies.validate(holds(expression), failurePolicy="Ignore")
    await api.create(CONFIG_MAPS, config_map("a"))
    name = await policies.validate(holds(expression))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert status["message"].endswith(
        denial(name, f"expression '{expression}' resulted in error: no such key: nothing")
    )
    assert ignored not in status["message"]


@source(VALIDATOR)
async def test_deletions(api, policies):
    """The object is null, and has no fields; the old one says what goes."""
    await policies.validate(
        holds("!has(object.data) && oldObject.metadata.name != 'stays'", reason="Forbidden"),
        matchConstraints=on(rule("configmaps", operations=["DELETE"])),
    )
    await api.create(CONFIG_MAPS, config_map("stays"))
    await api.create(CONFIG_MAPS, config_map("goes"))
    await api.delete(CONFIG_MAPS, "stays").refused(403, "Forbidden")
    await api.delete(CONFIG_MAPS, "goes")


@source(VALIDATOR)
async def test_pods_of_a_node_alone_may_be_deleted_and_their_status_written(api, policies):
    """What an agent needs that has no right of its own for its node: a policy on ``oldObject.spec.nodeName``."""
    rules = rule("pods", operations=["DELETE"]), rule("pods/status", operations=["UPDATE"])
    await policies.validate(
        holds("has(oldObject.spec.nodeName) && oldObject.spec.nodeName == 'mine'", reason="Forbidden"),
        matchConstraints=on(*rules),
    )
    for name, node in (("mine", "mine"), ("theirs", "theirs"), ("nobodys", "")):
        await api.create(PODS, pod(name, node=node))
    status = {"status": {"phase": "Failed"}}
    for name in ("theirs", "nobodys"):
        await api.delete(PODS, name, gracePeriodSeconds=0).refused(403, "Forbidden")
        await api.patch(PODS, name, status, sub="status").refused(403, "Forbidden")
    await api.patch(PODS, "mine", status, sub="status")
    await api.delete(PODS, "mine", gracePeriodSeconds=0)


# -- whom they concern -------------------------------------------------------------------------------------------------


@source(MATCHING)
async def test_objects_are_selected(api, policies):
    """An object without the label does not concern the policy."""
    selector = {"matchLabels": {"judged": "yes"}}
    await policies.validate(holds("false"), matchConstraints=on(objectSelector=selector))
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.create(CONFIG_MAPS, config_map("b", labels={"judged": "yes"})).refused(422, "Invalid")


@source(MATCHING)
async def test_namespaces_are_selected(api, policies):
    """What happens in a namespace without the label does not concern the policy."""
    await policies.validate(holds("false"), matchConstraints=on(namespaceSelector={"matchLabels": {"judged": "yes"}}))
    await api.create(CONFIG_MAPS, config_map("a"))
    await api.patch(NAMESPACES, api.namespace, {"metadata": {"labels": {"judged": "yes"}}})
    async with asyncio.timeout(SECONDS):  # a real server hears of labels a moment later
        while (reply := await api.create(CONFIG_MAPS, config_map("b"), dryRun="All").reply()).status == 201:
            await asyncio.sleep(0.1)
    reply.refused(422, "Invalid")


@source(MATCHING)
async def test_names_and_exclusions(api, policies):
    """Rules can name objects; what an exclusion matches is never concerned."""
    constraints = on(rule("configmaps", resourceNames=["x", "y"]))
    constraints["excludeResourceRules"] = [rule("configmaps", resourceNames=["y"])]
    await policies.validate(holds("false"), matchConstraints=constraints)
    await api.create(CONFIG_MAPS, config_map("x")).refused(422, "Invalid")
    for name in ("y", "z"):
        await api.create(CONFIG_MAPS, config_map(name))


@source(MATCHING)
async def test_a_binding_narrows_the_policy(api, policies):
    """Its rules hold besides those of the policy."""
    narrowed = {"matchResources": {"resourceRules": [rule("configmaps", operations=["UPDATE"])]}}
    await policies.validate(holds("false"), binding=narrowed)
    await api.create(CONFIG_MAPS, config_map())
    await api.patch(CONFIG_MAPS, "m", {"data": {"k": "w"}}).refused(422, "Invalid")


@source("staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions/matcher.go")
async def test_match_conditions_of_policies(api, policies):
    """One that is false is enough; otherwise one that fails denies."""
    conditions = [
        {"name": "fails", "expression": "object.data.nothing == 'x'"},
        {"name": "named", "expression": "object.metadata.name.startsWith('x')"},
    ]
    name = await policies.validate(holds("true"), matchConditions=conditions)
    await api.create(CONFIG_MAPS, config_map("a"))
    status = await api.create(CONFIG_MAPS, config_map("x")).refused(422, "Invalid")
    why = "expression 'object.data.nothing == 'x'' resulted in error: no such key: nothing"
    assert status["message"].endswith(denial(name, why))


@source(VALIDATOR)
async def test_a_match_condition_that_fails_open(api, policies):
    """With failurePolicy Ignore a policy whose condition has no value is passed over."""
    conditions = [{"name": "fails", "expression": "object.data.nothing == 'x'"}]
    await policies.validate(holds("false"), matchConditions=conditions, failurePolicy="Ignore")
    await api.create(CONFIG_MAPS, config_map())


@source("https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/")
async def test_policies_do_not_judge_policies(api, policies):
    """Nobody can lock everybody out of mending them."""
    mark = {"mark": unique("all")}
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    constraints = on(everything, objectSelector={"matchLabels": mark})
    name = await policies.validate(holds("false"), matchConstraints=constraints)
    await api.create(CONFIG_MAPS, config_map(labels=mark)).refused(422, "Invalid")
    await api.patch(VALIDATING, name, {"metadata": {"labels": mark}})
    await api.delete(VALIDATING, name, dryRun="All")


# -- variables ---------------------------------------------------------------------------------------------------------


@source(COMPOSITION)
async def test_variables(api, policies):
    """They are evaluated when they are used, and can use those before them."""
    variables = [
        {"name": "one", "expression": "size(object.data)"},
        {"name": "two", "expression": "variables.one + 1"},
        {"name": "bad", "expression": "object.nothing.at.all"},
    ]
    name = await policies.validate(
        holds("variables.two == 2 || variables.bad == 1", messageExpression="string(variables.two)"),
        variables=variables,
    )
    await api.create(CONFIG_MAPS, config_map("a"))
    status = await api.create(CONFIG_MAPS, config_map(data={"k": "v", "l": "w"})).refused(422, "Invalid")
    why = 'composited variable "bad" fails to evaluate: no such key: nothing'
    assert status["message"].endswith(
        denial(name, f"expression 'variables.two == 2 || variables.bad == 1' resulted in error: {why}")
    )


@source(ACTIVATION)
async def test_the_namespace_and_the_request(api, policies):
    """Expressions see the namespace of the object, and who asks for what."""
    await api.patch(NAMESPACES, api.namespace, {"metadata": {"labels": {"tier": "gold"}}})
    name = await policies.validate(
        holds(
            "namespaceObject.metadata.labels['tier'] != 'gold'",
            messageExpression="request.operation + ' ' + request.resource.resource + ' ' + request.namespace",
        )
    )
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    assert status["message"].endswith(denial(name, f"CREATE configmaps {api.namespace}"))


@source(AUTHZ)
async def test_the_authorizer(api, policies):
    """Expressions can ask what the requester may do: to write a config map, here, takes the right to run commands in pods."""
    user = unique("user")
    exec_ = f"authorizer.group('').resource('pods').subresource('exec').namespace('{api.namespace}').check('create')"
    await policies.validate(holds(f"{exec_}.allowed()", message="no exec"))
    await grant(api, user, "configmaps")
    as_user = {"impersonate-user": user}
    status = await api.ask("POST", api.at(CONFIG_MAPS), config_map(), headers=as_user).refused(422, "Invalid")
    assert status["message"].endswith("no exec")
    await grant(api, user, "pods/exec")
    async with asyncio.timeout(SECONDS):  # a real server hears of roles a moment later
        while (await api.ask("POST", api.at(CONFIG_MAPS), config_map(), headers=as_user).reply()).status != 201:
            await asyncio.sleep(0.1)


@source(AUTHZ)
async def test_the_authorizer_about_this_request(api, policies):
    """And about an account other than the requester's, which may do nothing."""
    other = f"authorizer.serviceAccount('{api.namespace}', 'powerless').group('').resource('secrets').check('get')"
    await policies.validate(holds(f"!{other}.allowed() && !{other}.errored()"))
    await api.create(CONFIG_MAPS, config_map("a"))
    await policies.validate(holds("!authorizer.requestResource.check('create').allowed()", message="you may"))
    status = await api.create(CONFIG_MAPS, config_map("b")).refused(422, "Invalid")
    assert status["message"].endswith("you may")


async def grant(api, user, what):
    """The user may create these from now on."""
    group, name = "rbac.authorization.k8s.io", unique("role")
    rules = [{"apiGroups": [""], "resources": [what], "verbs": ["create"]}]
    await api.create(ROLES, {**meta(name), "rules": rules})
    subject = {"kind": "User", "name": user, "apiGroup": group}
    role = {"kind": "Role", "name": name, "apiGroup": group}
    await api.create(ROLE_BINDINGS, {**meta(name), "subjects": [subject], "roleRef": role})
    async with asyncio.timeout(SECONDS):
        body = config_map("probe", labels={"probe": "of-grants"})
        while (
            what == "configmaps"
            and (
                await api.ask(
                    "POST", api.at(CONFIG_MAPS), body, headers={"impersonate-user": user}, dryRun="All"
                ).reply()
            ).status
            == 403
        ):
            await asyncio.sleep(0.1)


@source(AUTHZ)
async def test_what_cannot_be_asked_of_the_authorizer(api, policies):
    """A path must not be empty."""
    name = await policies.validate(holds("authorizer.path('').check('get').allowed()"))
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    why = "expression 'authorizer.path('').check('get').allowed()' resulted in error: path must not be empty"
    assert status["message"].endswith(denial(name, why))


# -- parameters --------------------------------------------------------------------------------------------------------


@source(GENERIC)
async def test_a_parameter(api, policies):
    """The object that the binding names, in the namespace of the request."""
    await api.create(ACCOUNTS, meta("limits", labels={"k": "v"}))
    kind, reference = (
        {"apiVersion": "v1", "kind": "ServiceAccount"},
        {"name": "limits", "parameterNotFoundAction": "Deny"},
    )
    only = holds("object.data.k == params.metadata.labels.k", messageExpression="'only ' + params.metadata.labels.k")
    name = await policies.validate(only, paramKind=kind, binding={"paramRef": reference})
    await api.create(CONFIG_MAPS, config_map("good"))
    status = await api.create(CONFIG_MAPS, config_map("bad", data={"k": "w"})).refused(422, "Invalid")
    assert status["message"].endswith(denial(name, "only v"))


@source(GENERIC)
@pytest.mark.parametrize("action", ["Deny", "Allow"])
async def test_a_parameter_that_is_not_there(api, policies, action):
    """The binding says what happens then."""
    reference = {"selector": {"matchLabels": {"none": unique()}}, "parameterNotFoundAction": action}
    constraints = on(rule("configmaps", operations=["CREATE"]))
    name = await policies.validate(
        holds("false"), matchConstraints=constraints, paramKind=PARAMS, binding={"paramRef": reference}
    )
    if action == "Allow":
        await api.create(CONFIG_MAPS, config_map())
        return
    status = await api.create(CONFIG_MAPS, config_map()).refused(422, "Invalid")
    why = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert status["message"].endswith(denial(name, why))


@source(GENERIC)
async def test_a_kind_of_parameters_that_there_is_not(api, policies):
    """The whole policy cannot be used, whatever its binding says; with failurePolicy Ignore it is passed over."""
    mark = {"mark": unique("kind")}
    constraints = on(objectSelector={"matchLabels": mark})
    kind = {"apiVersion": "nothing.example.com/v1", "kind": "Nothing"}
    said = {"paramKind": kind, "binding": {"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}}}
    await policies.validate(holds("false"), matchConstraints=constraints, failurePolicy="Ignore", **said)
    await api.create(CONFIG_MAPS, config_map("ignored", labels=mark))
    name = await policies.validate(holds("true"), matchConstraints=constraints, **said)
    why = "failed to find resource referenced by paramKind: 'nothing.example.com/v1, Kind=Nothing'"
    denied = f"ValidatingAdmissionPolicy '{name}' denied request: failed to configure policy: {why}"
    for namespace in (api.namespace, "default"):
        path = CONFIG_MAPS.path(namespace)
        status = await api.ask("POST", path, config_map(labels=mark), dryRun="All").refused(422, "Invalid")
        assert status["message"].endswith(denied)
