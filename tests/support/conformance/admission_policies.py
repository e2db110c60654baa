"""Admission policies of one case of the conformance suite, all of them for its namespace alone."""

import asyncio
from dataclasses import dataclass, field

from support.conformance.api_client import SECONDS, unique
from support.conformance.objects import config_map

from lastcall.adapters.kube.resources import CONFIG_MAPS, dict_resource

_GROUP = "admissionregistration.k8s.io"
VALIDATING = dict_resource(_GROUP, "v1", "validatingadmissionpolicies")
VALIDATING_BINDINGS = dict_resource(_GROUP, "v1", "validatingadmissionpolicybindings")
MUTATING = dict_resource(_GROUP, "v1", "mutatingadmissionpolicies")
MUTATING_BINDINGS = dict_resource(_GROUP, "v1", "mutatingadmissionpolicybindings")
PROBE = "probe-of-policies"
"""A label of objects by which a case finds out whether its policies are in force."""


def rule(*resources, group="", operations=("CREATE", "UPDATE", "DELETE"), **more):
    """One entry of ``resourceRules``."""
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": [*operations], "resources": [*resources], **more}


def on(*rules, **more):
    """``matchConstraints``; config maps, if nothing is said."""
    return {"resourceRules": [*(rules or (rule("configmaps"),))], **more}


def holds(expression, **more):
    """One validation."""
    return {"expression": expression, **more}


def applied(expression):
    """A mutation by an apply configuration."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patched(expression):
    """A mutation by a JSON patch."""
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


@dataclass
class Policies:
    """Puts policies into force; they are removed when the case ends."""

    api: object
    names: list = field(default_factory=list)

    async def validate(self, *validations, actions=("Deny",), binding=None, **spec):
        """A ValidatingAdmissionPolicy with its binding; the name of both."""
        name = unique("policy")
        spec = {"matchConstraints": on(), **spec, "validations": [*validations]}
        bound = {"policyName": name, "validationActions": [*actions], **(binding or {})}
        return await self._begin(name, VALIDATING, VALIDATING_BINDINGS, spec, bound)

    async def mutate(self, *mutations, binding=None, **spec):
        """A MutatingAdmissionPolicy with its binding; the name of both."""
        name = unique("policy")
        constraints = on(rule("configmaps", operations=["CREATE", "UPDATE"]))
        spec = {"matchConstraints": constraints, "reinvocationPolicy": "Never", **spec, "mutations": [*mutations]}
        return await self._begin(name, MUTATING, MUTATING_BINDINGS, spec, {"policyName": name, **(binding or {})})

    async def _begin(self, name, policies, bindings, spec, bound):
        here = {"matchLabels": {"kubernetes.io/metadata.name": self.api.namespace}}
        narrowed = {**(bound.get("matchResources") or {}), "namespaceSelector": here}
        await self._create(name, policies, bindings, spec, {**bound, "matchResources": narrowed})
        await self._in_force(policies, bindings)
        return name

    async def _create(self, name, policies, bindings, spec, bound):
        await self.api.create(policies, {"metadata": {"name": name}, "spec": spec})
        await self.api.create(bindings, {"metadata": {"name": name}, "spec": bound})

    async def _in_force(self, policies, bindings):
        """Waits until a policy of the same kind, made after the others, acts on a probe.

        A real server looks at new policies each second, at each kind by itself, and takes all that it knows of. The probe
        lies in another namespace, where the policies of the case neither change nor deny it.
        """
        name, mark = unique("probe"), unique("mark")
        only = {"objectSelector": {"matchLabels": {PROBE: mark}}}
        constraints = {"matchConstraints": on(rule("configmaps", operations=["CREATE"]), **only)}
        bound = {"policyName": name}
        if policies == VALIDATING:
            spec, bound["validationActions"] = {**constraints, "validations": [holds("false")]}, ["Deny"]
        else:
            seen = patched("[JSONPatch{op: 'add', path: '/data/seen', value: 'yes'}]")
            spec = {**constraints, "reinvocationPolicy": "Never", "mutations": [seen]}
        await self._create(name, policies, bindings, spec, bound)
        body = config_map(name, labels={PROBE: mark})
        async with asyncio.timeout(SECONDS):
            while True:
                reply = await self.api.ask("POST", CONFIG_MAPS.path("default"), body, dryRun="All").reply()
                if reply.status != 201 or "seen" in reply.body["data"]:
                    break
                await asyncio.sleep(0.1)
        assert reply.status == (422 if policies == VALIDATING else 201), reply
