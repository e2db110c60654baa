"""Any fence agent of ClusterLabs as a ``ports_fences.Fence``: some eighty programs for as many kinds of devices.

An agent reads its parameters on standard input. What is secret is in none of its arguments, its environment, or our
messages; for the agents that would hand it on to ``ipmitool`` as an argument, ``ipmitool.sh`` makes a file of it.

Agents do not say which machine is behind their device.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lastcall.adapters.fencing.agent_process import Term, memory, run
from lastcall.adapters.fencing.agent_schema import Schema, parse, violations
from lastcall.adapters.fencing.agent_words import SLOW_CODES, Ended, fault, lines, status
from lastcall.errors import InvalidInput, LastcallError, TimedOut, Unavailable
from lastcall.model.power import Power
from lastcall.ports_fences import FenceAnswer, FenceTarget

DIRECTORIES = ("/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin")
_IPMITOOL = Path(__file__).with_name("ipmitool.sh")
_PASSWORDS = ("password", "passwd")
_METADATA_SECONDS = 10.0


class FenceAgent:
    """One agent with the parameters for one machine. ``patience``: seconds for a question that changes nothing."""

    def __init__(
        self,
        name: str,
        program: Path,
        schema: Schema,
        *,
        parameters: Mapping[str, str],
        secrets: Mapping[str, str],
        patience: float,
    ) -> None:
        self._name = name
        self._program = program
        self._parameters = {**parameters, **secrets}
        self._secrets = tuple(secrets.values())
        self._by_ipmitool = "ipmitool_path" in schema.parameters
        self._patience = patience
        self._term: Term | None = None

    @property
    def name(self) -> str:
        """In the policy."""
        return self._name

    async def target(self) -> FenceTarget:
        """Empty: agents do not say it."""
        return FenceTarget()

    async def status(self) -> FenceAnswer:
        """ON and OFF only if exit code and text agree; every fault is UNKNOWN with a reason."""
        try:
            return status(await self._run("status", self._patience), self._secrets)
        except LastcallError as error:
            return FenceAnswer(power=Power.UNKNOWN, why=str(error))

    async def off(self, within: float) -> None:
        """Most agents return when the power is off; one that gave up waiting for it has given the order."""
        await self._switch("off", within)

    async def on(self, within: float) -> None:
        """As ``off``."""
        await self._switch("on", within)

    def put_off(self, until: float) -> None:
        """``ports_fences.Lasting``: devices that are waited for until their power is off may take 20 to 40 seconds."""
        if self._term:
            self._term.put_off(until)

    async def _switch(self, action: str, within: float) -> None:
        term = self._term = Term()
        try:
            ended = await self._run(action, within, term)
        finally:
            self._term = None
        if ended.code != SLOW_CODES[action]:
            self._check(ended, term.seconds)

    def _check(self, ended: Ended, within: float) -> None:
        if ended.code is None:
            raise TimedOut(f"{self._program.name} was not over after {within:g} s and was killed")
        if ended.code != 0:
            raise Unavailable(f"{self._program.name}: {fault(ended, self._secrets)}")

    async def _run(self, action: str, within: float, term: Term | None = None) -> Ended:
        command = [str(self._program)]
        if not self._by_ipmitool:
            return await run(command, lines(action, self._parameters), within=within, term=term)
        parameters = {**self._parameters, "ipmitool_path": str(_IPMITOOL)}
        password = next((parameters.pop(name) for name in _PASSWORDS if name in parameters), None)
        if password is None:
            return await run(command, lines(action, parameters), within=within, term=term)
        with memory(f"{password}\n".encode()) as file:
            parameters["password"] = f"/proc/{os.getpid()}/fd/{file}"
            return await run(command, lines(action, parameters), within=within, term=term)


class FenceAgents:
    """The agents of this machine; each is asked once how it wants to be used."""

    def __init__(self, directories: Sequence[str] = DIRECTORIES) -> None:
        self._directories = directories
        self._schemas: dict[Path, tuple[float, Schema]] = {}

    async def __call__(
        self, name: str, program: str, parameters: Mapping[str, str], secrets: Mapping[str, str], *, patience: float
    ) -> FenceAgent:
        """A fence of this name. ``patience``: seconds for a question that changes nothing.

        InvalidInput: there is no such agent, or its parameters break its rules; Unavailable and TimedOut: it did not
        describe itself.
        """
        path = self._path(program)
        schema = await self._schema(path)
        if wrong := violations(schema, parameters, secrets):
            raise InvalidInput(f"fencer {name}: {program}", wrong)
        return FenceAgent(name, path, schema, parameters=parameters, secrets=secrets, patience=patience)

    def _path(self, program: str) -> Path:
        for directory in self._directories:
            path = Path(directory, Path(program).name)
            if path.name == program and os.access(path, os.X_OK):
                return path
        where = ", ".join(self._directories)
        raise InvalidInput("fence agent", [f"program: {program}: there is no such program in {where}"])

    async def _schema(self, path: Path) -> Schema:
        changed = os.stat(path).st_mtime  # noqa: PTH116 - one look at a local file
        known = self._schemas.get(path)
        if known and known[0] == changed:
            return known[1]
        ended = await run([str(path)], lines("metadata", {}), within=_METADATA_SECONDS)
        if ended.code is None:
            raise TimedOut(f"{path.name} did not describe itself in {_METADATA_SECONDS:g} s")
        if ended.code != 0:
            raise Unavailable(f"{path.name} did not describe itself: {fault(ended, ())}")
        schema = parse(path.name, ended.out.encode())
        self._schemas[path] = (changed, schema)
        return schema
