"""TLS to members: the settings that several providers have in common."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from lastcall.adapters.guard.settings import ProviderSettings, SecretSource
from lastcall.model.pods import Pod
from lastcall.ports.guard import MemberStream, NamespaceAccess


class MemberTlsSettings(ProviderSettings, frozen=True):
    """Whom to trust, and what to show."""

    ca_secret: SecretSource | None = None
    """The authority of the application's certificate (PEM); key ``ca.crt``. Without it the system's."""
    server_name: Annotated[str, Meta(pattern=r"^$|^[a-zA-Z0-9]([-a-zA-Z0-9.]*[a-zA-Z0-9])?$", max_length=253)] = ""
    """The name in the certificate; without it the pod's address."""
    client_certificate_secret: SecretSource | None = None
    """A client certificate with its key: ``tls.crt`` and ``tls.key``, as in a Secret of the type kubernetes.io/tls."""

    def list_unused(self, needs: str) -> Iterator[str]:
        """Each setting that is given, as a violation: without TLS it counts for nothing."""
        named = {"caSecret": self.ca_secret, "clientCertificateSecret": self.client_certificate_secret}
        yield from (f'{field}: "{source.name}": needs {needs}' for field, source in named.items() if source)
        if self.server_name:
            yield f'serverName: "{self.server_name}": needs {needs}'


async def connect_with_tls(access: NamespaceAccess, pod: Pod, port: int, settings: MemberTlsSettings) -> MemberStream:
    """A connection to a pod whose certificate is verified. Errors as of ``NamespaceAccess.connect``."""
    name = settings.server_name or pod.status.pod_ip
    source, shown = settings.ca_secret, settings.client_certificate_secret
    ca = await access.read_secret(source.name, source.key or "ca.crt") if source else ""
    if shown is None:
        return await access.connect(pod, port, tls_name=name, ca=ca)
    certificate = await access.read_secret(shown.name, "tls.crt")
    key = await access.read_secret(shown.name, "tls.key")
    return await access.connect(pod, port, tls_name=name, ca=ca, certificate=certificate, key=key)
