"""What a replica of the guard serves with, and what the API server is told of it: one after the other, in a safe order."""

import logging
import ssl
from typing import Protocol

from lastcall.adapters.kube import tls
from lastcall.adapters.webhook.serving_material import ServingMaterial
from lastcall.errors import LastcallError
from lastcall.ports.node import Clock

RELOAD_SECONDS = 60.0
"""Between two looks at the certificate's Secret and at the webhook configuration."""

PROPAGATION_SECONDS = 5.0
"""Until every API server knows a change of the webhook configuration, which it watches."""

RETRY_SECONDS = 2.0

log = logging.getLogger(__name__)


class MaterialSource(Protocol):
    """``serving_secret.ServingSecret``."""

    async def read_or_make(self) -> ServingMaterial:
        """What is served with now."""
        ...


class AuthorityTarget(Protocol):
    """``webhook_configuration.WebhookConfigurations``."""

    async def ensure(self, *, authorities: str, token: str) -> bool:
        """Sets the secret part of the path and trusted authorities; False if a configuration is missing."""
        ...


class ServingCertificate:
    """Keeps ``context`` and the webhook configurations as the Secret says."""

    def __init__(
        self,
        secret: MaterialSource,
        configuration: AuthorityTarget,
        context: ssl.SSLContext,
        clock: Clock,
    ) -> None:
        self._secret = secret
        self._configuration = configuration
        self._context = context
        self._clock = clock
        self._material: ServingMaterial | None = None

    @property
    def path_token(self) -> str:
        """The secret part of the path; "" as long as none is known."""
        return self._material.path_token if self._material else ""

    async def load(self) -> None:
        """Loads what is served with; waits as long as the API server does not answer."""
        while True:
            try:
                return await self._reload()
            except LastcallError as error:
                log.warning("the certificate cannot be loaded: %s", error)
                await self._clock.sleep(RETRY_SECONDS)

    async def run(self) -> None:
        """Follows the Secret, and tells the API server the path and whom to trust, without end: every replica does.

        The Secret is read before each time: a replica that knew an older authority would take the newer one away.
        """
        while True:
            is_told = False
            try:
                await self._reload()
                is_told = await self._tell()
            except LastcallError as error:
                log.warning("the webhook configuration cannot be written: %s", error)
            await self._clock.sleep(RELOAD_SECONDS if is_told else RETRY_SECONDS)

    async def _reload(self) -> None:
        """A new authority is told before a certificate of it is served: no API server refuses the guard meanwhile."""
        before, found = self._material, await self._secret.read_or_make()
        if found == before:
            return
        if before and found.authorities != before.authorities:
            await self._configuration.ensure(authorities=found.authorities, token=found.path_token)
            await self._clock.sleep(PROPAGATION_SECONDS)
        tls.load_certificate(self._context, found.certificate, found.key)
        self._material = found

    async def _tell(self) -> bool:
        assert self._material is not None  # it is loaded before
        return await self._configuration.ensure(authorities=self._material.authorities, token=self._material.path_token)
