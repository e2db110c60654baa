"""A fence agent of ClusterLabs as a ``ports.fences.Fence``: about eighty programs for as many kinds of devices.

An agent reads its parameters on standard input. Secrets appear neither in its arguments, nor in its environment, nor in
our messages. Some agents would pass a secret on to ``ipmitool`` as an argument: for these, ``ipmitool.sh`` puts it into
a file.

Agents do not report which machine their device controls.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lastcall.adapters.fencing.agent_process import RunDeadline, memory_file, run_agent
from lastcall.adapters.fencing.agent_protocol import (
    SLOW_CODES,
    AgentResult,
    failure_reason,
    power_answer,
    stdin_lines,
)
from lastcall.adapters.fencing.agent_schema import AgentSchema, parameter_violations, parse_metadata
from lastcall.errors import InvalidInput, LastcallError, TimedOut, Unavailable
from lastcall.model.power import PowerState
from lastcall.ports.fences import FenceAnswer, FenceTarget

DIRECTORIES = ("/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin")
_IPMITOOL = Path(__file__).with_name("ipmitool.sh")
_PASSWORDS = ("password", "passwd")
_METADATA_SECONDS = 10.0


class FenceAgent:
    """An agent with the parameters for one machine. ``patience``: seconds for a request that changes nothing."""

    def __init__(
        self,
        name: str,
        program: Path,
        schema: AgentSchema,
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
        self._term: RunDeadline | None = None

    @property
    def name(self) -> str:
        """The fencer's name in the policy."""
        return self._name

    async def read_target(self) -> FenceTarget:
        """Empty: agents do not report their target."""
        return FenceTarget()

    async def read_power(self) -> FenceAnswer:
        """Reads the power: ON and OFF only if exit code and text agree; every fault is UNKNOWN with a reason."""
        try:
            return power_answer(await self._run_agent("status", self._patience), self._secrets)
        except LastcallError as error:
            return FenceAnswer(power=PowerState.UNKNOWN, why=str(error))

    async def switch_off(self, within: float) -> None:
        """Most agents return when the power is off; one that stopped waiting for that has still given the order."""
        await self._switch_power("off", within)

    async def switch_on(self, within: float) -> None:
        """As ``switch_off``."""
        await self._switch_power("on", within)

    def extend_order(self, until: float) -> None:
        """``ports.fences.Lasting``: devices that wait until the power is off may take 20 to 40 seconds."""
        if self._term:
            self._term.extend_order(until)

    async def _switch_power(self, action: str, within: float) -> None:
        term = self._term = RunDeadline()
        try:
            ended = await self._run_agent(action, within, term)
        finally:
            self._term = None
        if ended.code != SLOW_CODES[action]:
            self._check_result(ended, term.granted_seconds)

    def _check_result(self, ended: AgentResult, within: float) -> None:
        if ended.code is None:
            raise TimedOut(f"{self._program.name} was not over after {within:g} s and was killed")
        if ended.code != 0:
            raise Unavailable(f"{self._program.name}: {failure_reason(ended, self._secrets)}")

    async def _run_agent(self, action: str, within: float, term: RunDeadline | None = None) -> AgentResult:
        command = [str(self._program)]
        if not self._by_ipmitool:
            return await run_agent(command, stdin_lines(action, self._parameters), within=within, term=term)
        parameters = {**self._parameters, "ipmitool_path": str(_IPMITOOL)}
        password = next((parameters.pop(name) for name in _PASSWORDS if name in parameters), None)
        if password is None:
            return await run_agent(command, stdin_lines(action, parameters), within=within, term=term)
        with memory_file(f"{password}\n".encode()) as file:
            parameters["password"] = f"/proc/{os.getpid()}/fd/{file}"
            return await run_agent(command, stdin_lines(action, parameters), within=within, term=term)


class FenceAgents:
    """The fence agents on this machine; each is asked once for its parameters."""

    def __init__(self, directories: Sequence[str] = DIRECTORIES) -> None:
        self._directories = directories
        self._schemas: dict[Path, tuple[float, AgentSchema]] = {}

    async def __call__(
        self, name: str, program: str, parameters: Mapping[str, str], secrets: Mapping[str, str], *, patience: float
    ) -> FenceAgent:
        """Returns a fence of this name. ``patience``: seconds for a request that changes nothing.

        Raises InvalidInput if there is no such agent or its parameters break its rules; Unavailable or TimedOut if it
        did not describe itself.
        """
        path = self._find_program(program)
        schema = await self._read_schema(path)
        if wrong := parameter_violations(schema, parameters, secrets):
            raise InvalidInput(f"fencer {name}: {program}", wrong)
        return FenceAgent(name, path, schema, parameters=parameters, secrets=secrets, patience=patience)

    def _find_program(self, program: str) -> Path:
        for directory in self._directories:
            path = Path(directory, Path(program).name)
            if path.name == program and os.access(path, os.X_OK):
                return path
        where = ", ".join(self._directories)
        raise InvalidInput("fence agent", [f"program: {program}: there is no such program in {where}"])

    async def _read_schema(self, path: Path) -> AgentSchema:
        changed = os.stat(path).st_mtime  # noqa: PTH116 - one look at a local file
        known = self._schemas.get(path)
        if known and known[0] == changed:
            return known[1]
        ended = await run_agent([str(path)], stdin_lines("metadata", {}), within=_METADATA_SECONDS)
        if ended.code is None:
            raise TimedOut(f"{path.name} did not describe itself in {_METADATA_SECONDS:g} s")
        if ended.code != 0:
            raise Unavailable(f"{path.name} did not describe itself: {failure_reason(ended, ())}")
        schema = parse_metadata(path.name, ended.out.encode())
        self._schemas[path] = (changed, schema)
        return schema
