"""Credentials from a program: ``client.authentication.k8s.io/v1`` and ``v1beta1`` (client-go credential plugins)."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec

from lastcall.adapters.kube.credentials import Credential
from lastcall.aio import any_done, timeout
from lastcall.errors import NotPermitted, Unavailable
from lastcall.ports import Clock

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_MOST_SAID = 500
_EARLY = 10.0
"""Seconds before its end in which a credential is not used any more."""


@dataclass(frozen=True)
class Program:
    """What the ``exec`` part of a kubeconfig says; ``cluster`` is what the program is told with provideClusterInfo."""

    api_version: str
    command: str
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    hint: str = ""
    cluster: Mapping[str, Any] | None = None
    timeout: float = 60.0


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecPlugin:
    """Asks the program, and keeps its answer until it expires or is refused; without an expiry until it is refused."""

    def __init__(self, program: Program, clock: Clock, fixed: Credential | None = None) -> None:
        self._program = program
        self._clock = clock
        self._fixed = fixed or Credential()
        self._credential: Credential | None = None
        self._expires = float("inf")
        self._asking: asyncio.Task[Credential] | None = None

    async def current(self) -> Credential:
        """Unavailable if the program fails, NotPermitted if it is missing or gives no credential.

        It is asked once for all who wait, and goes on when one of them gives up: a request that has little time, again
        and again, gets its credential in the end.
        """
        if self._credential is not None and self._clock.wall() < self._expires - _EARLY:
            return self._credential
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask(), name=f"asking {self._program.command}")
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())  # nobody may be left
        asking = self._asking
        await any_done(asking)
        return asking.result()

    async def _ask(self) -> Credential:
        try:
            self._credential, self._expires = self._understood(await self._output())
            return self._credential
        finally:
            self._asking = None

    def refused(self, credential: Credential) -> bool:
        """The program is asked again, unless it has been since."""
        if self._credential is credential:
            self._credential = None
        return True

    async def _output(self) -> bytes:
        program = self._program
        try:
            process = await asyncio.create_subprocess_exec(
                program.command,
                *program.args,
                env={**os.environ, **(program.env or {}), "KUBERNETES_EXEC_INFO": self._info()},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = f"\n{program.hint}" if program.hint else ""
            raise NotPermitted(f"the credential plugin {program.command} cannot be started: {error}{hint}") from error
        try:
            async with timeout(program.timeout):
                output, said = await process.communicate()
        except TimeoutError:
            raise Unavailable(
                f"the credential plugin {program.command} said nothing for {program.timeout:g} s"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            words = said.decode(errors="replace").strip()[-_MOST_SAID:]
            raise Unavailable(f"the credential plugin {program.command} failed with {process.returncode}: {words}")
        return output

    def _info(self) -> str:
        spec: dict[str, Any] = {"interactive": False}
        if self._program.cluster is not None:
            spec["cluster"] = self._program.cluster
        return json.dumps({"apiVersion": self._program.api_version, "kind": "ExecCredential", "spec": spec})

    def _understood(self, output: bytes) -> tuple[Credential, float]:
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
        status = answer.status or _Status()
        if not status.token and not (status.client_certificate_data and status.client_key_data):
            raise NotPermitted(f"the credential plugin {command} gave neither a token nor a certificate with its key")
        credential = replace(
            self._fixed,
            token=status.token,
            certificate=status.client_certificate_data,
            key=status.client_key_data,
        )
        return credential, expires
