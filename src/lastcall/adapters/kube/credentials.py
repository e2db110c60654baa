"""Credentials for an API server: tokens and client certificates, read again when they may have changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from lastcall.adapters.host.bounded_reads import CONFIG_BYTES, read_file
from lastcall.errors import InvalidInput, Unavailable
from lastcall.ports.node import Clock

FRESH_SECONDS = 60.0
"""Seconds for which a file's content is reused: a bound token is renewed long before it expires (client-go: a minute).
"""


@dataclass(frozen=True)
class Credential:
    """A bearer token, or a client certificate with its key (PEM), or both; ``headers`` go with every request."""

    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)


class CredentialSource(Protocol):
    """A source of credentials."""

    async def current_credential(self) -> Credential:
        """The credential to use now. Raises Unavailable or NotPermitted if there is none."""
        ...

    def mark_refused(self, credential: Credential) -> bool:
        """Records that the server refused this one; returns whether ``current_credential`` may now return another.

        Many requests may be refused with one credential: only the first of them causes a renewal.
        """
        ...


class StaticCredentials:
    """One fixed credential."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current_credential(self) -> Credential:
        """Always that credential."""
        return self._credential

    def mark_refused(self, credential: Credential) -> bool:
        """False: there is no other credential."""
        return False


class FileCredentials:
    """A fixed credential, with parts from files (``token_file``, ``certificate_file``, ``key_file``).

    A file that holds both certificate and key is read once for both, because the kubelet replaces
    ``kubelet-client-current.pem`` at any time: parts of two versions would not belong together.
    """

    def __init__(
        self,
        fixed: Credential,
        clock: Clock,
        *,
        token_file: Path | None = None,
        certificate_file: Path | None = None,
        key_file: Path | None = None,
    ) -> None:
        self._fixed = fixed
        self._clock = clock
        self._token = token_file
        self._certificate = certificate_file
        self._key = key_file
        self._read: Credential | None = None
        self._read_at = 0.0

    async def current_credential(self) -> Credential:
        """The credential from files read less than a minute ago. Raises Unavailable if one cannot be read."""
        now = self._clock.boottime()
        if self._read is None or now - self._read_at > FRESH_SECONDS:
            self._read, self._read_at = self._read_credential(), now
        return self._read

    def mark_refused(self, credential: Credential) -> bool:
        """Reads the files again if they may have changed; a credential without files stays refused."""
        self._read = None
        try:
            return self._read_credential() != credential
        except Unavailable:
            return False

    def _read_credential(self) -> Credential:
        token = read_text(self._token).strip() if self._token else self._fixed.token
        certificate = read_text(self._certificate) if self._certificate else self._fixed.certificate
        if self._key:
            key = certificate if self._key == self._certificate else read_text(self._key)
        else:
            key = self._fixed.key
        return replace(self._fixed, token=token, certificate=certificate, key=key)


def read_text(path: Path) -> str:
    """A small file. Unavailable says why it cannot be read."""
    try:
        return read_file(path, CONFIG_BYTES).decode()
    except (OSError, UnicodeDecodeError, InvalidInput) as error:
        raise Unavailable(f"{path} cannot be read: {error}") from error
