"""Admission of GuardPolicies: the guard lends its rights to nobody (pure).

Who writes a GuardPolicy with the provider ``exec`` or ``rabbitmq`` has commands run, and who names a Secret has it read. So he must have
these rights in the namespace himself.
"""

from typing import Final

from lastcall import names
from lastcall.manifests.rbac import Object

NAME: Final = "lastcall-guard-provider-rights"
_API: Final = "admissionregistration.k8s.io/v1"

_EXEC: Final = (
    "!object.spec.provider.exists(name, name in ['exec', 'rabbitmq']) || authorizer.group('').resource('pods').subresource('exec')"
    ".namespace(object.metadata.namespace).check('create').allowed()"
)
# The type is asked first: of a Secret that is no mapping, has() is an error by the specification of CEL.
_SECRETS: Final = (
    "object.spec.provider.all(provider, dyn(object.spec.provider[provider]).all(field, !field.endsWith('Secret') ||"
    " type(dyn(object.spec.provider[provider])[field]) != map || !has(dyn(object.spec.provider[provider])[field].name) || authorizer.group('').resource('secrets')"
    ".namespace(object.metadata.namespace).name(string(dyn(object.spec.provider[provider])[field].name))"
    ".check('get').allowed()))"
)


def provider_rights_policy(labels: dict[str, str]) -> Object:
    """The ValidatingAdmissionPolicy."""
    rule = {
        "apiGroups": [names.GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["guardpolicies"],
        "scope": "*",  # the default, given here because kubectl would otherwise find it missing at each apply
    }
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {
                    "expression": _EXEC,
                    "message": "spec.provider: whoever has commands run (exec, rabbitmq) must have the right to create"
                    " pods/exec in this namespace",
                    "reason": "Forbidden",
                },
                {
                    "expression": _SECRETS,
                    "message": "spec.provider: whoever names a Secret must have the right to get it in this namespace",
                    "reason": "Forbidden",
                },
            ],
        },
    }


def provider_rights_binding(labels: dict[str, str]) -> Object:
    """Its binding, for all namespaces."""
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME, "labels": labels},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    }
