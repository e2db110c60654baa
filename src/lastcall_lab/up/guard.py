"""Runs ``lastcall guard run`` in the lab, with the objects that it needs, created by the API as in any cluster."""

import asyncio
import socket
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from lastcall.adapters.kube.client import Client
from lastcall.manifests.guard import GuardChoices, guard_labels, guard_objects
from lastcall.manifests.guard_grants import NAME
from lastcall.manifests.guard_webhooks import PATH, guard_webhook_configuration, url_client
from lastcall.manifests.pod_policies import SECONDS
from lastcall.manifests.settle_webhook import PATH as SETTLE_PATH
from lastcall.manifests.settle_webhook import settle_webhook_configuration
from lastcall.manifests.uninstall_webhook import PATH as UNINSTALL_PATH
from lastcall.manifests.uninstall_webhook import uninstall_webhook_configuration
from lastcall.model.eviction_request_mode import EvictionRequestMode
from lastcall.names import GUARD_UNINSTALL, SYSTEM_NAMESPACE
from lastcall.wiring.guard import GuardProgram, GuardSettings
from lastcall_lab.apiserver.server import kubeconfig
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.control_plane.control_plane import ControlPlane
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.control_plane.identities import service_account_identity

_HOST: Final = "127.0.0.1"
_ELSEWHERE: Final = ("Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service")
"""Kinds of the manifests that only a guard in a pod needs."""
_PODS: Final = ip_network("127.0.0.0/8")
"""Where the lab's pods have their addresses."""


class LabGuard:
    """The guard in the lab's own process; ``directory`` is for its kubeconfig.

    ``eviction_requests``: nothing else in the lab acts on them.
    """

    def __init__(
        self,
        plane: ControlPlane,
        directory: Path,
        *,
        eviction_requests: EvictionRequestMode = EvictionRequestMode.OFF,
    ) -> None:
        self._plane = plane
        self._eviction_requests = eviction_requests
        self._kubeconfig = directory / "guard.kubeconfig"

    async def run(self) -> None:
        """Creates missing objects when the control plane serves, then runs until cancelled."""
        await self._plane.up.wait()
        port = _find_port()
        await self._create_objects(self._plane.client(ADMIN), port)
        await asyncio.to_thread(self._write_kubeconfig)
        settings = GuardSettings(
            kubeconfig=str(self._kubeconfig),
            webhook=(_HOST, port),
            names=[_HOST],
            allowed_networks=[_PODS],
            eviction_requests=self._eviction_requests,
            settle_seconds=SECONDS,
        )
        program = await asyncio.to_thread(GuardProgram, settings)  # it reads the kubeconfig
        await program.run_until_cancelled()

    async def _create_objects(self, admin: Client, port: int) -> None:
        """As in any cluster, but for what only a guard in a pod needs; the webhook is at a URL of this machine."""
        url, labels = f"https://{_HOST}:{port}", guard_labels()
        choices = GuardChoices(eviction_requests=self._eviction_requests, settle_seconds=SECONDS)
        for obj in guard_objects(choices):
            if obj["kind"] == "ValidatingWebhookConfiguration" and obj["metadata"]["name"] == GUARD_UNINSTALL:
                found = uninstall_webhook_configuration(url_client(f"{url}{UNINSTALL_PATH}"), labels=labels)
                await create_object(admin, found)
            elif obj["kind"] == "ValidatingWebhookConfiguration":
                await create_object(admin, guard_webhook_configuration(url_client(f"{url}{PATH}"), labels=labels))
            elif obj["kind"] == "MutatingWebhookConfiguration":
                found = settle_webhook_configuration(url_client(f"{url}{SETTLE_PATH}"), labels=labels)
                await create_object(admin, found)
            elif obj["kind"] not in _ELSEWHERE:
                await create_object(admin, obj)

    def _write_kubeconfig(self) -> None:
        """The guard acts as the service account of the manifests, so that an audit shows its own requests."""
        self._kubeconfig.unlink(missing_ok=True)
        kubeconfig.write_kubeconfig(
            self._kubeconfig,
            url=self._plane.url,
            authority=self._plane.authority,
            token=self._plane.issue_token(service_account_identity(SYSTEM_NAMESPACE, NAME)),
            user=NAME,
        )


def _find_port() -> int:
    with socket.socket() as found:
        found.bind((_HOST, 0))
        port: int = found.getsockname()[1]
        return port
