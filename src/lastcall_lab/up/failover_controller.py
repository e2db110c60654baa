"""Runs ``lastcall controller`` in the lab, with the objects that it needs, created by the API as in any cluster."""

import asyncio
import importlib.util
from pathlib import Path

from lastcall.adapters.kube.client import Client
from lastcall.errors import NotFound
from lastcall.manifests.controller import NAMESPACE, ControllerChoices, controller_objects
from lastcall.manifests.labels import NAME
from lastcall.ports.node import Clock
from lastcall.wiring.controller import ControllerProgram, ControllerSettings
from lastcall_lab.apiserver.server import kubeconfig
from lastcall_lab.apiserver.values.request import ADMIN
from lastcall_lab.control_plane.control_plane import ControlPlane
from lastcall_lab.control_plane.create_objects import create_object
from lastcall_lab.control_plane.identities import service_account_identity
from lastcall_lab.up import fence_objects

_ELSEWHERE = ("Deployment", "PodDisruptionBudget")
"""Kinds of the manifests that only a controller in a pod needs."""
_FENCED_BY = "sushy"
"""The module of the fencer redfish, which a process of the controller imports."""
_LOOK = 0.05


class LabFailoverController:
    """``suspect_after`` as in ``fence_objects.fence_policy``; ``directory`` is for its kubeconfig.

    Raises ModuleNotFoundError if the library that switches the lab's machines off is not installed: without it no
    failover would ever end.
    """

    def __init__(self, plane: ControlPlane, directory: Path, clock: Clock, *, suspect_after: str = "") -> None:
        if importlib.util.find_spec(_FENCED_BY) is None:
            raise ModuleNotFoundError(f"No module named {_FENCED_BY!r}", name=_FENCED_BY)
        self._plane = plane
        self._kubeconfig = directory / "controller.kubeconfig"
        self._clock = clock
        self._suspect_after = suspect_after

    async def run(self) -> None:
        """Creates missing objects when the control plane serves, then fails nodes over until cancelled."""
        await self._plane.up.wait()
        admin = self._plane.client(ADMIN)
        for obj in controller_objects(ControllerChoices()):
            if obj["kind"] not in _ELSEWHERE:
                await create_object(admin, obj)
        secret = fence_objects.bmc_secret(
            NAMESPACE, password=self._plane.bmc_password, authority=self._plane.authority.decode()
        )
        await create_object(admin, secret)
        await self._make_policy(admin)
        await asyncio.to_thread(self._write_kubeconfig)
        await ControllerProgram(ControllerSettings(kubeconfig=str(self._kubeconfig))).run_until_cancelled()

    async def _make_policy(self, admin: Client) -> None:
        """Creates the policy when its kind is served, a moment after its definition was created."""
        policy = fence_objects.fence_policy(self._plane.url, suspect_after=self._suspect_after)
        while True:
            try:
                await create_object(admin, policy)
                return
            except NotFound:
                await self._clock.sleep(_LOOK)

    def _write_kubeconfig(self) -> None:
        """The controller acts as the service account of the manifests, so that an audit shows its own requests."""
        self._kubeconfig.unlink(missing_ok=True)
        kubeconfig.write_kubeconfig(
            self._kubeconfig,
            url=self._plane.url,
            authority=self._plane.authority,
            token=self._plane.issue_token(service_account_identity(NAMESPACE, NAME)),
            user=NAME,
        )
