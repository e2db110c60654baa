"""Validating- and MutatingWebhookConfigurations (``pkg/apis/admissionregistration``)."""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import SplitResult, urlsplit

from lastcall.model import name_rules
from lastcall_lab.apiserver.cel.admission_variables import DeclaredVariables
from lastcall_lab.apiserver.kinds import common_rules
from lastcall_lab.apiserver.kinds.label_selector_rules import validate_selector
from lastcall_lab.apiserver.kinds.match_resources import check_conditions
from lastcall_lab.apiserver.kinds.webhook_rules import check_rule
from lastcall_lab.apiserver.resources.kind_behaviour import KindBehaviour
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

_FORM = "; desired format: https://host[/path]"
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_VERSIONS = ("v1", "v1beta1")


class WebhookConfigurationKind(KindBehaviour):
    """Webhooks that are called before a write. ``mutating`` ones may change the object."""

    known_finalizers = False
    has_generation = True
    needs_revision = True

    def __init__(self, *, mutating: bool) -> None:
        self._mutating = mutating

    def default(self, obj: Object) -> None:
        """Sets failurePolicy Fail, selectors that match everything, timeout ten seconds."""
        for hook in obj.get("webhooks") or ():
            common_rules.fill_missing(hook, failurePolicy="Fail", matchPolicy="Equivalent", timeoutSeconds=10)
            for name in ("namespaceSelector", "objectSelector"):
                if hook.get(name) is None:
                    hook[name] = {}
            if self._mutating:
                common_rules.fill_missing(hook, reinvocationPolicy="Never")
            service = common_rules.sub_object(hook, "clientConfig").get("service")
            if service is not None:
                common_rules.fill_missing(service, port=443)
            for rule in hook.get("rules") or ():
                common_rules.fill_missing(rule, scope="*")

    def generation_source(self, obj: Object) -> object:
        """The webhooks."""
        return obj.get("webhooks") or []

    def validate(self, obj: Object) -> Iterable[Cause]:
        """``ValidateValidatingWebhookConfiguration`` and ``ValidateMutatingWebhookConfiguration``."""
        return self._check(obj, ())

    def validate_update(self, new: Object, old: Object) -> Iterable[Cause]:
        """The same validation without unchanged match conditions."""
        return self._check(new, [hook.get("matchConditions") for hook in old.get("webhooks") or ()])

    def _check(self, obj: Object, conditions: Sequence[object]) -> Iterator[Cause]:
        hooks = obj.get("webhooks") or []
        known = [hook.get("matchConditions") for hook in hooks] == list(conditions)
        seen: set[str] = set()
        for index, hook in enumerate(hooks):
            path, name = f"webhooks[{index}]", hook.get("name", "")
            yield from self._check_hook(hook, path)
            if not known:
                conditions = hook.get("matchConditions") or ()
                yield from check_conditions(conditions, f"{path}.matchConditions", DeclaredVariables())
            yield from _check_versions(hook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
            if name in seen:
                yield field_errors.duplicate(f"{path}.name", name)
            seen.add(name)

    def _check_hook(self, hook: Object, path: str) -> Iterator[Cause]:
        yield from _check_name(hook.get("name", ""), f"{path}.name")
        for index, rule in enumerate(hook.get("rules") or ()):
            yield from check_rule(rule, f"{path}.rules[{index}]")
        yield from common_rules.check_one_of(hook["failurePolicy"], f"{path}.failurePolicy", "Fail", "Ignore")
        yield from common_rules.check_one_of(hook["matchPolicy"], f"{path}.matchPolicy", "Equivalent", "Exact")
        if not hook.get("sideEffects"):
            yield field_errors.value_required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
        yield from common_rules.check_one_of(hook.get("sideEffects") or None, f"{path}.sideEffects", *_SIDE_EFFECTS)
        if not 1 <= hook["timeoutSeconds"] <= 30:
            why = "the timeout value must be between 1 and 30 seconds"
            yield field_errors.invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], why)
        yield from validate_selector(hook["namespaceSelector"], f"{path}.namespaceSelector")
        yield from validate_selector(hook["objectSelector"], f"{path}.objectSelector")
        if self._mutating:
            yield from common_rules.check_one_of(
                hook["reinvocationPolicy"], f"{path}.reinvocationPolicy", "IfNeeded", "Never"
            )
        yield from _check_client(hook["clientConfig"], f"{path}.clientConfig")


def _check_name(name: str, path: str) -> Iterator[Cause]:
    """``IsFullyQualifiedName``."""
    if not name:
        yield field_errors.value_required(path)
    elif wrong := name_rules.subdomain_error(name):
        yield field_errors.invalid(path, name, wrong)
    elif name.count(".") < 2:
        yield field_errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _check_versions(versions: Sequence[str], path: str) -> Iterator[Cause]:
    known = ", ".join(_VERSIONS)
    if not versions:
        yield field_errors.value_required(path, f"must specify one of {known}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield field_errors.invalid(f"{path}[{index}]", version, "duplicate version")
        elif wrong := name_rules.service_name_error(version):
            yield field_errors.invalid(f"{path}[{index}]", version, wrong)
    if not set(versions) & set(_VERSIONS):
        yield field_errors.invalid(path, list(versions), f"must include at least one of {known}")


def _check_client(client: Object, path: str) -> Iterator[Cause]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield field_errors.value_required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from check_url(url, f"{path}.url")
    else:
        yield from check_service(service or {}, f"{path}.service")


def check_url(url: str, path: str) -> Iterator[Cause]:
    """``ValidateWebhookURL``."""
    try:
        parts: SplitResult = urlsplit(url)
    except ValueError as error:
        yield field_errors.value_required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield field_errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    user, _, host = parts.netloc.rpartition("@")
    if not host:
        yield field_errors.invalid(path, host, f"host must be specified{_FORM}")
    if user:
        yield field_errors.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield field_errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield field_errors.invalid(path, parts.query, "query parameters are not permitted in the URL")


def check_service(service: Object, path: str) -> Iterator[Cause]:
    """``ValidateWebhookService``, which upstream calls with name and namespace swapped."""
    if not service.get("namespace"):
        yield field_errors.value_required(f"{path}.name")
    if not service.get("name"):
        yield field_errors.value_required(f"{path}.namespace")
    if not 1 <= service["port"] <= 65535:
        why = "port is not valid: must be between 1 and 65535, inclusive"
        yield field_errors.invalid(f"{path}.port", service["port"], why)
    yield from _check_path(service.get("path") or "/", f"{path}.path")


def _check_path(url: str, path: str) -> Iterator[Cause]:
    if url == "/":
        return
    if not url.startswith("/"):
        yield field_errors.invalid(path, url, "must start with a '/'")
    for index, step in enumerate(url[1:].removesuffix("/").split("/")):
        if not step:
            yield field_errors.invalid(path, url, f"segment[{index}] may not be empty")
        elif wrong := name_rules.subdomain_error(step):
            yield field_errors.invalid(path, url, f"segment[{index}]: {wrong}")
