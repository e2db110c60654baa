"""Who we are to an API server: tokens and client certificates, read again when they may have changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from lastcall.adapters.host.bounded_reads import CONFIG_BYTES, read_file
from lastcall.errors import InvalidInput, Unavailable
from lastcall.ports.node import Clock

FRESH_SECONDS = 60.0
"""How long a file that was read counts as read: a bound token is renewed long before it ends (client-go: a minute)."""


@dataclass(frozen=True)
class Credential:
    """A bearer token, or a client certificate with its key (PEM), or both; ``headers`` go with every request."""

    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)


class CredentialSource(Protocol):
    """Where credentials come from."""

    async def current_credential(self) -> Credential:
        """The one to use now. Unavailable or NotPermitted if there is none."""
        ...

    def mark_refused(self, credential: Credential) -> bool:
        """The server did not accept this one; whether ``current_credential`` may give another now.

        Many requests may be refused for one credential: only the first of them makes it be had anew.
        """
        ...


class StaticCredentials:
    """Always the same."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current_credential(self) -> Credential:
        """That one."""
        return self._credential

    def mark_refused(self, credential: Credential) -> bool:
        """There is no other."""
        return False


class FileCredentials:
    """A fixed credential, parts of which may lie in files (``token_file``, ``certificate_file``, ``key_file``)."""

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
        """As the files are now, or were less than a minute ago. Unavailable if one cannot be read."""
        now = self._clock.boottime()
        if self._read is None or now - self._read_at > FRESH_SECONDS:
            self._read, self._read_at = self._read_credential(), now
        return self._read

    def mark_refused(self, credential: Credential) -> bool:
        """Files may have changed since they were read; what is fixed stays refused."""
        self._read = None
        try:
            return self._read_credential() != credential
        except Unavailable:
            return False

    def _read_credential(self) -> Credential:
        token = read_text(self._token).strip() if self._token else self._fixed.token
        certificate = read_text(self._certificate) if self._certificate else self._fixed.certificate
        key = read_text(self._key) if self._key else self._fixed.key
        return replace(self._fixed, token=token, certificate=certificate, key=key)


def read_text(path: Path) -> str:
    """A small file. Unavailable says why it cannot be read."""
    try:
        return read_file(path, CONFIG_BYTES).decode()
    except (OSError, UnicodeDecodeError, InvalidInput) as error:
        raise Unavailable(f"{path} cannot be read: {error}") from error
