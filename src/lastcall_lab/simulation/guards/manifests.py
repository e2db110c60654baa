"""What the guard needs in a cluster, as its manifests have it, and the policies of a rehearsal (pure)."""

from collections.abc import Sequence

from lastcall import names
from lastcall.manifests.guard import GuardChoices, guard_objects
from lastcall.manifests.guard_webhooks import guard_webhook_configuration, url_client
from lastcall_lab.apiserver.values.request import Object
from lastcall_lab.simulation.manifests import LABEL
from lastcall_lab.simulation.scenario import GuardSettings, ScenarioWorkload

_NEEDED = ("Namespace", "CustomResourceDefinition", "Lease")
"""Kinds of the manifests without which it does not run, where the API server asks for no rights."""

_URL = "https://guard.example/review"


def simulation_objects() -> Sequence[Object]:
    """In the order in which they can be made; the kind GuardPolicy is served a moment later."""
    return [one for one in guard_objects(GuardChoices()) if one["kind"] in _NEEDED]


def webhook_configuration(settings: GuardSettings) -> Object:
    """By which the API server asks."""
    return guard_webhook_configuration(url_client(_URL), failure_policy=settings.failure_policy)


def guard_policy(workload: ScenarioWorkload) -> Object:
    """Of a workload's pods; the rehearsal has a provider of its own for it."""
    metadata = {"name": workload.name, "namespace": workload.namespace}
    spec = {"selector": {"matchLabels": {LABEL: workload.name}}, "provider": {"http": {}}}
    return {"apiVersion": names.API_VERSION, "kind": names.GUARD_POLICY, "metadata": metadata, "spec": spec}
