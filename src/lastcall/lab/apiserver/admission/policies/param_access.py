"""Who puts a policy into force must be allowed to read its parameters, which the policy could show to others.

``pkg/registry/admissionregistration`` (authz.go of policies and bindings).
"""

from typing import Any, ClassVar

from lastcall.lab.apiserver import fields, status
from lastcall.lab.apiserver.admission.chain import Attributes, Plugin
from lastcall.lab.apiserver.admission.policies import mutating, validating
from lastcall.lab.apiserver.admission.policies.access import Authorize
from lastcall.lab.apiserver.authorization.attributes import MASTERS, AccessAttributes
from lastcall.lab.apiserver.request import Identity, Object
from lastcall.lab.apiserver.scheme import Scheme
from lastcall.lab.apiserver.store import Key, Store

_POLICIES = {validating.BINDINGS: validating.POLICIES, mutating.BINDINGS: mutating.POLICIES}


class ParamAccess(Plugin):
    """Sees policies that name another kind of parameters than before, and each write of a binding that refers to some."""

    sees: ClassVar[frozenset[str]] = frozenset({*_POLICIES, *_POLICIES.values()})

    def __init__(self, store: Store, scheme: Scheme, authorize: Authorize) -> None:
        self._store = store
        self._scheme = scheme
        self._authorize = authorize

    async def validate(self, attributes: Attributes) -> None:
        """ApiError (422) if the user may not read them."""
        obj, old = attributes.obj, attributes.old or {}
        if obj is None or attributes.subresource or MASTERS in attributes.user.groups:
            return
        spec, before = obj["spec"], old.get("spec") or {}
        if attributes.resource.qualified in _POLICIES:
            # Kubernetes compares paramRef with the old one by pointers, so each update is checked again.
            if spec.get("paramRef"):
                self._check_binding(attributes, spec)
        elif spec.get("paramKind") and spec["paramKind"] != before.get("paramKind"):
            self._check_policy(attributes, spec["paramKind"])

    def _check_policy(self, attributes: Attributes, kind: Object) -> None:
        asked = self._read_attributes(attributes.user, "get", kind)._replace(name="*", namespace="*")
        if not self._authorize(asked).allowed:
            said = f"kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')}"
            why = f'must have "get" permission on all objects of the referenced paramKind ({said})'
            raise _refused(attributes, "spec.paramKind", f"user {_user_text(attributes.user)} {why}")

    def _check_binding(self, attributes: Attributes, spec: Object) -> None:
        reference, name = spec["paramRef"], spec.get("policyName", "")
        verb = "get" if reference.get("name") else "list"
        stored = self._store.get(Key(_POLICIES[attributes.resource.qualified], "", name))
        kind = stored.object()["spec"].get("paramKind") if stored else None
        asked = self._read_attributes(attributes.user, verb, kind or {})
        where: dict[str, Any] = {"name": reference.get("name") or "", "namespace": reference.get("namespace") or ""}
        if self._authorize(asked._replace(**where)).allowed:
            return
        user = f'user {_user_text(attributes.user)} does not have "{verb}" permission'
        why = f"{user} on the object referenced by paramRef"
        if stored is None:
            unknown = f"unable to get policy {name} to determine minimum required permissions"
            why = f"{unknown} and {user} for all groups, versions and resources"
        raise _refused(attributes, "spec.paramRef", why)

    def _read_attributes(self, user: Identity, verb: str, kind: Object) -> AccessAttributes:
        """Everything, where the kind is not known."""
        version = kind.get("apiVersion", "")
        named = (version, kind.get("kind", ""))
        found = next((one for one in self._scheme if (one.api_version, one.kind) == named), None)
        group = version.rpartition("/")[0] if version else "*"
        return AccessAttributes(user, verb, group, found.plural if found else "*")


def _refused(attributes: Attributes, path: str, why: str) -> status.ApiError:
    resource = attributes.resource
    return status.invalid(resource.kind, resource.group, attributes.name, [fields.forbidden(path, why)])


def _user_text(user: Identity) -> str:
    """As Go prints it."""
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[]}}"
