"""Credentials from a program: ``client.authentication.k8s.io/v1`` and ``v1beta1`` (client-go credential plugins)."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from lastcall.adapters.host.bounded_reads import CONFIG_BYTES
from lastcall.adapters.kube.credentials import Credential
from lastcall.aio import timeout, wait_any
from lastcall.errors import NotPermitted, Unavailable
from lastcall.ports.node import Clock

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MOST_SAID = 500
_EARLY = 10.0
"""Seconds before its expiry in which a credential is not used any more."""


@dataclass(frozen=True)
class ExecConfig:
    """The ``exec`` section of a kubeconfig; ``cluster`` is what the program gets with provideClusterInfo."""

    api_version: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    hint: str = ""
    cluster: Mapping[str, Any] | None = None
    timeout: float = 60.0


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class _ProgramOutput(asyncio.SubprocessProtocol):
    """Collects a program's output, up to ``CONFIG_BYTES`` of each stream."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.stdout, self.stderr = bytearray(), bytearray()
        self.too_long = False
        self.complete: asyncio.Future[None] = loop.create_future()
        """Done when the program has ended and closed its pipes, or has exceeded the limit."""
        self.closed: asyncio.Future[None] = loop.create_future()
        """Done when the program has ended and its pipes are closed."""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called by asyncio."""
        stream = self.stdout if fd == 1 else self.stderr
        if len(stream) + len(data) > CONFIG_BYTES:
            self.too_long = True
            self._finish_when_complete()
        elif not self.too_long:
            stream += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self._finish_when_complete()
        self.closed.set_result(None)

    def _finish_when_complete(self) -> None:
        if not self.complete.done():
            self.complete.set_result(None)


class ExecPlugin:
    """Runs the program, and caches its credential until it expires or is refused."""

    def __init__(self, program: ExecConfig, clock: Clock, fixed: Credential | None = None) -> None:
        self._program = program
        self._clock = clock
        self._fixed = fixed or Credential()
        self._credential: Credential | None = None
        self._expires = float("inf")
        self._asking: asyncio.Task[Credential] | None = None

    @property
    def command(self) -> str:
        """The program, as a path or a name to search for."""
        return self._program.command

    async def current_credential(self) -> Credential:
        """Raises Unavailable if the program fails, NotPermitted if it is missing or gives no credential.

        One run serves all waiting requests, and it continues when one of them gives up: so a request with a short
        timeout that is repeated gets its credential in the end.
        """
        if self._credential is not None and self._clock.wall() < self._expires - _EARLY:
            return self._credential
        if self._asking is None:
            self._asking = asyncio.create_task(self._request_credential(), name=f"asking {self._program.command}")
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())  # no caller is left
        asking = self._asking
        await wait_any(asking)
        return asking.result()

    async def _request_credential(self) -> Credential:
        try:
            self._credential, self._expires = self._parse_output(await self._run_program())
            return self._credential
        finally:
            self._asking = None

    def mark_refused(self, credential: Credential) -> bool:
        """Discards the credential, unless the program has run since."""
        if self._credential is credential:
            self._credential = None
        return True

    async def _run_program(self) -> bytes:
        program = self._program
        output = _ProgramOutput()
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: output,
                program.command,
                *program.args,
                env={**os.environ, **(program.env or {}), "KUBERNETES_EXEC_INFO": self._exec_info()},
                stdin=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            hint = f"\n{program.hint}" if program.hint else ""
            raise NotPermitted(f"the credential plugin {program.command} cannot be started: {error}{hint}") from error
        try:
            async with timeout(program.timeout):
                await wait_any(output.complete)
        except TimeoutError:
            raise Unavailable(
                f"the credential plugin {program.command} said nothing for {program.timeout:g} s"
            ) from None
        finally:
            transport.close()  # kills it, and closes pipes that its children may keep open
            await wait_any(output.closed)
        if output.too_long:
            most = f"{CONFIG_BYTES // 2**20} MiB"
            raise Unavailable(f"the credential plugin {program.command} gave an output of more than {most}")
        if code := transport.get_returncode():
            words = output.stderr.decode(errors="replace").strip()[-_MOST_SAID:]
            raise Unavailable(f"the credential plugin {program.command} failed with {code}: {words}")
        return bytes(output.stdout)

    def _exec_info(self) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if self._program.cluster is not None:
            spec["cluster"] = self._program.cluster
        return json.dumps({"apiVersion": self._program.api_version, "kind": "ExecCredential", "spec": spec})

    def _parse_output(self, output: bytes) -> tuple[Credential, float]:
        command, version = self._program.command, self._program.api_version
        try:
            answer = msgspec.json.decode(output, type=_ExecCredential)
            expiry = answer.status.expiration_timestamp if answer.status else None
            expires = datetime.fromisoformat(expiry).timestamp() if expiry else float("inf")
        except ValueError as error:  # msgspec's errors are ValueErrors too
            raise NotPermitted(f"the credential plugin {command} gave no ExecCredential: {error}") from error
        if answer.api_version != version or answer.kind != "ExecCredential":
            said = f"{answer.kind or 'nothing'} of {answer.api_version or 'no version'}"
            raise NotPermitted(f"the credential plugin {command} gave {said} instead of ExecCredential of {version}")
        status = answer.status or _ExecStatus()
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise NotPermitted(f"the credential plugin {command} gave neither a token nor a certificate with its key")
        credential = replace(
            self._fixed,
            token=status.token,
            certificate=status.client_certificate_data,
            key=status.client_key_data,
        )
        return credential, expires
