"""The doctor's check of the guard's webhooks: what becomes of deletions while no guard answers (pure)."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lastcall.doctor.facts import GuardInstallation, HostFacts, HostFile, UnknownFact
from lastcall.doctor.finding import Finding, ok, unknown, warning
from lastcall.errors import InvalidInput
from lastcall.model.decoding import parse_documents

STATIC: Final = ".static.k8s.io"
"""How the names of webhook configurations end that an API server loads from files (KEP-5793)."""

_FAIL: Final = "Fail"
_UNPREPARED: Final = "while no guard answers a DELETE passes unprepared, and PodDisruptionBudgets hold evictions alone"
_REFUSED: Final = "while no guard answers deletions are refused, until lastcall controller withdraws the webhooks"


def check_guard(facts: HostFacts) -> Finding:
    """Whether deletions are held, and whether the webhooks for them can be withdrawn."""
    if isinstance(facts.static_webhooks, UnknownFact):
        return unknown(
            f"not known whether the API server here loads webhooks from files: {facts.static_webhooks.reason}"
        )
    static = [one for file in facts.static_webhooks for one in _static_configurations(file)]
    if static:
        return warning(
            f"pods are guarded by webhooks that the API server loads from files, which nobody can withdraw while their"
            f" guard does not answer: {', '.join(static)}",
            "move the file out of staticManifestsDir of each control plane node; kubectl apply -f it under another name",
        )
    if facts.guard is None:
        return ok("not checked without --kubeconfig: it does not affect the shutdown of this machine")
    if isinstance(facts.guard, UnknownFact):
        return unknown(f"not known: {facts.guard.reason}")
    return _check_installation(facts.guard)


def _check_installation(guard: GuardInstallation) -> Finding:
    if not guard.is_installed:
        return ok("there is no ValidatingWebhookConfiguration lastcall-guard: no deletion is held")
    if not guard.failure_policies:
        return warning(
            "the guard's webhooks are withdrawn: no deletion is held"
            if guard.is_withdrawn
            else "the guard has no webhooks",
            "kubectl -n lastcall-system get pods says why no guard is ready"
            if guard.is_withdrawn
            else "apply the guard's manifests or its chart again",
        )
    return ok(f"deletions of guarded pods are held; {_REFUSED if _FAIL in guard.failure_policies else _UNPREPARED}")


def _static_configurations(file: HostFile) -> Iterator[str]:
    """Name and file of each configuration that asks about the removal of pods."""
    try:
        documents = parse_documents(file.data, file.path)
    except InvalidInput:
        return
    for document in documents:
        for one in _objects(document):
            name = str((one.get("metadata") or {}).get("name", ""))
            if name.endswith(STATIC) and any(map(_is_about_removals, one.get("webhooks") or ())):
                yield f"{name} in {file.path}"


def _objects(document: Any) -> Iterator[Mapping[str, Any]]:
    """The object, or those of a List."""
    if isinstance(document, dict):
        items = document.get("items")
        yield from (one for one in items if isinstance(one, dict)) if isinstance(items, list) else (document,)


def _is_about_removals(webhook: Mapping[str, Any]) -> bool:
    """Whether any rule of it has the DELETE of pods, or their eviction."""
    return any(
        _matches(rule, "DELETE", ("pods", "*", "*/*")) or _matches(rule, "CREATE", ("pods/eviction", "pods/*", "*/*"))
        for rule in webhook.get("rules") or ()
    )


def _matches(rule: Mapping[str, Any], operation: str, resources: tuple[str, ...]) -> bool:
    operations = rule.get("operations") or ()
    return (operation in operations or "*" in operations) and any(
        one in resources for one in rule.get("resources") or ()
    )
