"""Requires read access to the parameters from whoever creates a policy binding, as a policy can reveal them.

``pkg/registry/admissionregistration`` (authz.go of policies and bindings).
"""

from typing import Any, ClassVar

from lastcall_lab.apiserver.admission.chain import AdmissionAttributes, AdmissionPlugin
from lastcall_lab.apiserver.admission.policies import mutating, validating
from lastcall_lab.apiserver.admission.policies.cel_authorizer import Authorize
from lastcall_lab.apiserver.authorization.attributes import MASTERS, AccessAttributes
from lastcall_lab.apiserver.resources.scheme import ResourceScheme
from lastcall_lab.apiserver.storage.store import StorageKey, Store
from lastcall_lab.apiserver.values import api_errors, field_errors
from lastcall_lab.apiserver.values.request import Object, UserInfo

_POLICIES = {validating.BINDINGS: validating.POLICIES, mutating.BINDINGS: mutating.POLICIES}


class ParamAccess(AdmissionPlugin):
    """Handles policies with a new parameter kind, and each write of a binding with parameters."""

    sees: ClassVar[frozenset[str]] = frozenset({*_POLICIES, *_POLICIES.values()})

    def __init__(self, store: Store, scheme: ResourceScheme, authorize: Authorize) -> None:
        self._store = store
        self._scheme = scheme
        self._authorize = authorize

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """ApiError (422) if the user may not read the parameters."""
        obj, old = attributes.obj, attributes.old or {}
        if obj is None or attributes.subresource or MASTERS in attributes.user.groups:
            return
        spec, before = obj["spec"], old.get("spec") or {}
        if attributes.resource.qualified_name in _POLICIES:
            # Kubernetes compares paramRef with the old one by pointers, so each update is checked again.
            if spec.get("paramRef"):
                self._check_binding(attributes, spec)
        elif spec.get("paramKind") and spec["paramKind"] != before.get("paramKind"):
            self._check_policy(attributes, spec["paramKind"])

    def _check_policy(self, attributes: AdmissionAttributes, kind: Object) -> None:
        asked = self._read_attributes(attributes.user, "get", kind)._replace(name="*", namespace="*")
        if not self._authorize(asked).allowed:
            said = f"kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')}"
            why = f'must have "get" permission on all objects of the referenced paramKind ({said})'
            raise _param_refusal(attributes, "spec.paramKind", f"user {_user_text(attributes.user)} {why}")

    def _check_binding(self, attributes: AdmissionAttributes, spec: Object) -> None:
        reference, name = spec["paramRef"], spec.get("policyName", "")
        verb = "get" if reference.get("name") else "list"
        stored = self._store.get(StorageKey(_POLICIES[attributes.resource.qualified_name], "", name))
        kind = stored.to_object()["spec"].get("paramKind") if stored else None
        asked = self._read_attributes(attributes.user, verb, kind or {})
        where: dict[str, Any] = {"name": reference.get("name") or "", "namespace": reference.get("namespace") or ""}
        if self._authorize(asked._replace(**where)).allowed:
            return
        user = f'user {_user_text(attributes.user)} does not have "{verb}" permission'
        why = f"{user} on the object referenced by paramRef"
        if stored is None:
            unknown = f"unable to get policy {name} to determine minimum required permissions"
            why = f"{unknown} and {user} for all groups, versions and resources"
        raise _param_refusal(attributes, "spec.paramRef", why)

    def _read_attributes(self, user: UserInfo, verb: str, kind: Object) -> AccessAttributes:
        """Access to everything if the kind is unknown."""
        version = kind.get("apiVersion", "")
        named = (version, kind.get("kind", ""))
        found = next((one for one in self._scheme if (one.api_version, one.kind) == named), None)
        group = version.rpartition("/")[0] if version else "*"
        return AccessAttributes(user, verb, group, found.plural if found else "*")


def _param_refusal(attributes: AdmissionAttributes, path: str, why: str) -> api_errors.ApiError:
    resource = attributes.resource
    return api_errors.invalid_error(resource.kind, resource.group, attributes.name, [field_errors.forbidden(path, why)])


def _user_text(user: UserInfo) -> str:
    """The user as Go prints it."""
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[]}}"
