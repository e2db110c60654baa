"""The stored policies with their bindings, and the parameters of a binding.

``k8s.io/apiserver/pkg/admission/plugin/policy/generic`` (policy_source, policy_dispatcher).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from lastcall.model.label_selector import selector_matcher
from lastcall_lab.apiserver.admission import admission_reviews, webhook_matching
from lastcall_lab.apiserver.admission.chain import AdmissionAttributes
from lastcall_lab.apiserver.admission.policies.cel_authorizer import Authorize, CelAuthorizer
from lastcall_lab.apiserver.admission.policies.expressions import PolicyScope, namespace_variable
from lastcall_lab.apiserver.admission.webhook_matching import MatchCriteria
from lastcall_lab.apiserver.resources import version_conversion
from lastcall_lab.apiserver.resources.scheme import ResourceScheme, ServedResource
from lastcall_lab.apiserver.storage.store import StorageKey, Store, StoredObject
from lastcall_lab.apiserver.values import api_errors
from lastcall_lab.apiserver.values.request import Object

T = TypeVar("T")


class ConfigurationFault(Exception):
    """A policy or a binding is unusable; the text is the reason in Kubernetes' words."""


@dataclass(frozen=True)
class AdmissionPolicy:
    """A policy of either kind; ``spec`` is the stored one."""

    name: str
    spec: Mapping[str, Any]
    criteria: MatchCriteria
    conditions: Sequence[str]
    composed: Mapping[str, str]
    """The expressions of ``spec.variables``, by name."""
    fails_open: bool


@dataclass(frozen=True)
class AdmissionBinding:
    """Puts a policy into force."""

    name: str
    policy: str
    spec: Mapping[str, Any]
    criteria: MatchCriteria | None


class Invocation(NamedTuple):
    """One policy with one binding and one parameter (possibly None), for one write."""

    policy: AdmissionPolicy
    binding: AdmissionBinding
    param: Object | None
    resource: ServedResource
    """The resource under which the policy sees the write."""

    @property
    def key(self) -> str:
        """Its unique identity."""
        metadata = (self.param or {}).get("metadata") or {}
        return f"{self.policy.name}/{self.binding.name}/{metadata.get('namespace', '')}/{metadata.get('name', '')}"


class PolicyFault(NamedTuple):
    """A policy that could not run, and why; without a binding if no binding of it is usable."""

    policy: AdmissionPolicy
    binding: AdmissionBinding | None
    why: str


class AdmissionPolicies:
    """The policies of one kind and their bindings, by the names under which they are stored."""

    def __init__(
        self, policies: str, bindings: str, store: Store, scheme: ResourceScheme, authorize: Authorize
    ) -> None:
        self._store = store
        self._scheme = scheme
        self._authorize = authorize
        self._policies: _ParsedObjects[AdmissionPolicy] = _ParsedObjects(store, policies, _policy)
        self._bindings: _ParsedObjects[AdmissionBinding] = _ParsedObjects(store, bindings, _binding)

    def find_invocations(self, attributes: AdmissionAttributes) -> Iterator[Invocation | PolicyFault]:
        """The invocations for the write, ordered by policy and binding, and the faults of unusable ones."""
        bindings = self._bindings.all()
        if not bindings or webhook_matching.is_exempt(attributes):
            return
        namespace, equivalents = self._namespace(attributes), self._equivalents(attributes.resource)
        for policy in self._policies.all():
            bound = [one for one in bindings if one.policy == policy.name]
            if not bound:
                continue
            try:
                resource = webhook_matching.matching_resource(policy.criteria, attributes, namespace, equivalents)
                if resource is None:
                    continue
                params = self._param_resource(policy)
            except (api_errors.ApiError, ConfigurationFault) as error:
                yield PolicyFault(policy, None, f"failed to configure policy: {_error_text(error)}")
                continue
            for binding in bound:
                try:
                    if binding.criteria and not webhook_matching.matching_resource(
                        binding.criteria, attributes, namespace, equivalents
                    ):
                        continue
                    found = self._params(params, binding, attributes)
                except (api_errors.ApiError, ConfigurationFault) as error:
                    yield PolicyFault(policy, binding, f"failed to configure binding: {_error_text(error)}")
                    continue
                yield from (Invocation(policy, binding, param, resource) for param in found)

    def policy_scope(
        self, invocation: Invocation, attributes: AdmissionAttributes, *, authorizer: bool = True
    ) -> PolicyScope:
        """The variables of the invocation's expressions. ApiError (404) if the namespace does not exist."""
        request = admission_reviews.admission_request(attributes, invocation.resource, "")
        variables = {"object": request.pop("object"), "oldObject": request.pop("oldObject"), "request": request}
        del request["uid"]
        if invocation.policy.spec.get("paramKind"):
            variables["params"] = invocation.param
        variables["namespaceObject"] = namespace_variable(self._surroundings(attributes))
        asked = CelAuthorizer(self._authorize, attributes) if authorizer else None
        return PolicyScope(variables, invocation.policy.composed, asked)

    def _surroundings(self, attributes: AdmissionAttributes) -> Object | None:
        """The namespace of the written object; a Namespace has none."""
        if not attributes.namespace or attributes.resource.qualified_name == "namespaces":
            return None
        found = self._namespace(attributes)
        if found is None:
            raise api_errors.not_found_error("namespaces", "", attributes.namespace)
        return found

    def _namespace(self, attributes: AdmissionAttributes) -> Object | None:
        name = attributes.name if attributes.resource.qualified_name == "namespaces" else attributes.namespace
        stored = self._store.get(StorageKey("namespaces", "", name)) if name else None
        return stored.to_object() if stored else None

    def _equivalents(self, resource: ServedResource) -> Sequence[ServedResource]:
        return [one for one in self._scheme if one is not resource and one.storage == resource.storage]

    # -- parameters ----------------------------------------------------------------------------------------------------

    def _param_resource(self, policy: AdmissionPolicy) -> ServedResource | None:
        """The resource of the policy's ``paramKind``. ConfigurationFault if it does not exist."""
        said = policy.spec.get("paramKind")
        if not said:
            return None
        version, kind = said.get("apiVersion", ""), said.get("kind", "")
        for resource in self._scheme:
            if (resource.api_version, resource.kind) == (version, kind):
                return resource
        group, _, number = version.rpartition("/")
        raise ConfigurationFault(f"failed to find resource referenced by paramKind: '{group}/{number}, Kind={kind}'")

    def _params(
        self, resource: ServedResource | None, binding: AdmissionBinding, attributes: AdmissionAttributes
    ) -> Sequence[Object | None]:
        """The parameters of the binding; a single None if it uses none (``CollectParams``)."""
        reference = binding.spec.get("paramRef")
        if resource is None or reference is None:
            return [None]
        namespace = reference.get("namespace") or ""
        if namespace and not resource.namespaced:
            raise ConfigurationFault("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if resource.namespaced and not namespace:
            namespace = attributes.namespace
            if not namespace:
                why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                raise ConfigurationFault(why)
        found = [
            version_conversion.to_served(one, resource) for one in self._find_params(resource, namespace, reference)
        ]
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise ConfigurationFault("no params found for policy binding with `Deny` parameterNotFoundAction")
        return found

    def _find_params(
        self, resource: ServedResource, namespace: str, reference: Mapping[str, Any]
    ) -> Sequence[StoredObject]:
        if reference.get("name"):
            stored = self._store.get(StorageKey(resource.storage, namespace, reference["name"]))
            return [stored] if stored else []
        selected = selector_matcher(reference.get("selector") or {})
        return [one for one in self._store.objects(resource.storage, namespace) if selected(one.labels)]


class _ParsedObjects(Generic[T]):
    """Parsed objects of a resource; each version is parsed once."""

    def __init__(self, store: Store, storage: str, read: Callable[[Object], T]) -> None:
        self._store = store
        self._storage = storage
        self._read = read
        self._known: dict[StorageKey, tuple[int, T]] = {}

    def all(self) -> Sequence[T]:
        """The parsed objects by name."""
        known: dict[StorageKey, tuple[int, T]] = {}
        if not self._store.count(self._storage):
            self._known = known
            return ()
        for stored in self._store.objects(self._storage):
            revision, value = self._known.get(stored.key, (0, None))
            known[stored.key] = (
                stored.revision,
                (value if value is not None and revision == stored.revision else self._read(stored.to_object())),
            )
        self._known = known
        return [value for _, value in known.values()]


def _policy(obj: Object) -> AdmissionPolicy:
    spec = obj["spec"]
    return AdmissionPolicy(
        name=obj["metadata"]["name"],
        spec=spec,
        criteria=MatchCriteria.of(spec.get("matchConstraints") or {}, "resourceRules", without_rules=True),
        conditions=[one["expression"] for one in spec.get("matchConditions") or ()],
        composed={one["name"]: one["expression"] for one in spec.get("variables") or ()},
        fails_open=spec.get("failurePolicy", "Fail") == "Ignore",
    )


def _binding(obj: Object) -> AdmissionBinding:
    spec = obj["spec"]
    narrowed = spec.get("matchResources")
    criteria = MatchCriteria.of(narrowed, "resourceRules", without_rules=True) if narrowed else None
    return AdmissionBinding(obj["metadata"]["name"], spec["policyName"], spec, criteria)


def _error_text(error: Exception) -> str:
    return error.message if isinstance(error, api_errors.ApiError) else str(error)
