"""What expressions of policies are given: the parameters of a binding, one after the other, and what the requester may do."""

import asyncio

import pytest
from support.conformance.admission_policies import holds, on, patched, rule
from support.conformance.api_client import SECONDS, unique
from support.conformance.objects import config_map, meta

from lastcall.adapters.kube.resources import CONFIG_MAPS, dict_resource

source = pytest.mark.source
GENERIC = "staging/src/k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go"
AUTHZ = "staging/src/k8s.io/apiserver/pkg/cel/library/authz.go"
RBAC = "rbac.authorization.k8s.io"
ACCOUNTS = dict_resource("", "v1", "serviceaccounts")
ROLES, ROLE_BINDINGS = dict_resource(RBAC, "v1", "roles"), dict_resource(RBAC, "v1", "rolebindings")
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount"}


async def limits(api):
    """Two objects that a selector takes and one that it does not take; the ``paramRef`` that selects them."""
    for name, labels in (
        ("a", {"limits": "yes", "prefix": "x"}),
        ("b", {"limits": "yes", "prefix": "xy"}),
        ("c", {"prefix": "z"}),
    ):
        await api.create(ACCOUNTS, meta(name, labels=labels))
    return {"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}


@source(GENERIC)
async def test_every_selected_parameter_judges(api, policies):
    """And those that are not selected do not."""
    name = await policies.validate(
        holds("object.metadata.name.startsWith(params.metadata.labels.prefix)", messageExpression="'by ' + params.metadata.name"),
        paramKind=ACCOUNT,
        matchConstraints=on(rule("configmaps", operations=["CREATE"])),
        binding={"paramRef": await limits(api)},
    )  # fmt: skip
    await api.create(CONFIG_MAPS, config_map("xyz"))
    for refused, by in (("xz", "b"), ("yz", "a")):
        status = await api.create(CONFIG_MAPS, config_map(refused)).refused(422, "Invalid")
        assert status["message"].endswith(
            f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: by {by}"
        )


@source(GENERIC)
async def test_every_selected_parameter_mutates(api, policies):
    """The policy is applied once for each."""
    add = "[JSONPatch{op: 'add', path: '/data/' + params.metadata.name, value: params.metadata.labels.prefix}]"
    await policies.mutate(patched(add), paramKind=ACCOUNT, binding={"paramRef": await limits(api)})
    made = await api.create(CONFIG_MAPS, config_map())
    assert made["data"] == {"k": "v", "a": "x", "b": "xy"}


CHECKS = {
    "group('apps').resource('deployments').namespace(here).check('get')": True,
    "group('').resource('deployments').namespace(here).check('get')": False,
    "group('apps').resource('deployments').namespace(here).check('list')": False,
    "group('apps').resource('deployments').namespace('default').check('get')": False,
    "group('apps').resource('statefulsets').namespace(here).check('get')": False,
    "group('').resource('secrets').namespace(here).name('mine').check('get')": True,
    "group('').resource('secrets').namespace(here).name('other').check('get')": False,
    "group('').resource('secrets').namespace(here).check('get')": False,
    "group('').resource('pods').subresource('exec').namespace(here).check('create')": True,
    "group('').resource('pods').namespace(here).check('create')": False,
    "path('/version').check('get')": True,
    "path('/metrics').check('get')": False,
}
"""What is asked, and whether the requester may do it."""


@source(AUTHZ)
async def test_each_part_of_a_question_to_the_authorizer_counts(api, policies):
    """Group, resource, subresource, namespace, name, verb and path; the requester is asked about, not who made the policy."""
    user, role = unique("user"), unique("role")
    rules = [
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["mine"]},
        {"apiGroups": [""], "resources": ["pods/exec", "configmaps"], "verbs": ["create"]},
    ]
    await api.create(ROLES, {**meta(role), "rules": rules})
    bound = {"subjects": [{"kind": "User", "name": user, "apiGroup": RBAC}]}
    bound["roleRef"] = {"kind": "Role", "name": role, "apiGroup": RBAC}
    await api.create(ROLE_BINDINGS, {**meta(role), **bound})
    asked = [f"authorizer.{one.replace('here', repr(api.namespace))}.allowed()" for one in CHECKS]
    await policies.validate(
        *(holds(one if may else f"!{one}", message=one) for one, may in zip(asked, CHECKS.values(), strict=True))
    )
    headers = {"impersonate-user": user}
    async with asyncio.timeout(SECONDS):  # a real server hears of roles a moment later
        while (
            reply := await api.ask("POST", api.at(CONFIG_MAPS), config_map(), headers=headers).reply()
        ).status == 403:
            await asyncio.sleep(0.1)
    assert reply.status == 201, reply.body
