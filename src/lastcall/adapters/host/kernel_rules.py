"""Looks up whether NAT rules of this machine's kernel still name addresses of pods, by ``iptables-save`` and ``nft``."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from lastcall.aio import OrderedTaskGroup, timeout
from lastcall.errors import LastcallError, Unavailable
from lastcall.model.kernel_rules import find_named
from lastcall.ports.node import Clock

SECONDS = 1.5
"""Seconds for the programs, which run side by side: a drain waits two for the whole answer."""

MOST_BYTES: Final = 16 * 2**20
"""The most that a program may print: the rules of some 50,000 endpoints."""

REUSE_SECONDS = 1.0
"""What was read serves so long, since 100,000 rules take a CPU second to print."""

FAILED_SECONDS = 60.0
"""While no program has ever worked, nothing is tried for so long: a right or a program is missing."""

LEGACY = Path("/proc/net/ip_tables_names")
"""Exists with content if the kernel has tables of the older iptables, which the newer programs do not print."""

_COMMANDS: Final = (
    ("iptables-save", "-t", "nat"),
    ("ip6tables-save", "-t", "nat"),
    ("nft", "--stateless", "--numeric", "list", "table", "ip", "kube-proxy"),
    ("nft", "--stateless", "--numeric", "list", "table", "ip6", "kube-proxy"),
)
_LEGACY_COMMANDS: Final = (("iptables-legacy-save", "-t", "nat"), ("ip6tables-legacy-save", "-t", "nat"))

log = logging.getLogger(__name__)


class KernelRules:
    """Needs CAP_NET_ADMIN and netlink, and one of the programs. ``prefix`` are words before each command."""

    def __init__(self, clock: Clock, *, prefix: Sequence[str] = ()) -> None:
        self._clock, self._prefix = clock, tuple(prefix)
        self._worked: frozenset[Sequence[str]] = frozenset()
        """The commands that have printed rules once."""
        self._texts: Sequence[bytes] | None = None
        self._until = float("-inf")

    async def find_named(self, addresses: Collection[str]) -> frozenset[str] | None:
        """Those of the addresses that a rule names; None if not all rules could be read that could be once."""
        if self._clock.boottime() >= self._until:
            self._texts = await self._read_rules()
            pause = REUSE_SECONDS if self._worked else FAILED_SECONDS
            self._until = self._clock.boottime() + pause
        return None if self._texts is None else await asyncio.to_thread(find_named, self._texts, addresses)

    async def _read_rules(self) -> Sequence[bytes] | None:
        """None also if a command fails that has worked: what is missing then is not known to be gone."""
        legacy = _LEGACY_COMMANDS if await asyncio.to_thread(_has_content, LEGACY) else ()
        commands = (*_COMMANDS, *legacy)
        group = OrderedTaskGroup()
        running = [group.start(self._try(*one), one[0]) for one in commands]
        try:
            await group.join()
        finally:
            await group.cancel()
        found = {command: task.result() for command, task in zip(commands, running, strict=True)}
        texts = {command: text for command, text in found.items() if text is not None}
        is_whole = self._worked <= texts.keys()
        self._worked |= texts.keys()
        return [*texts.values()] if texts and is_whole else None

    async def _try(self, *command: str) -> bytes | None:
        try:
            return await self._run(*command)
        except LastcallError as error:
            log.debug("the kernel's rules: %s", error)
            return None

    async def _run(self, *command: str) -> bytes:
        """What the command prints. No part of the process survives this call."""
        pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            process = await asyncio.create_subprocess_exec(
                *self._prefix, *command, stdin=null, stdout=pipe, stderr=null, limit=MOST_BYTES
            )
        except OSError as error:
            raise Unavailable(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            async with timeout(SECONDS):
                output = await _read_output(process, command[0])
                await process.wait()
        except TimeoutError:
            raise Unavailable(f"{command[0]} was not done in {SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise Unavailable(f"{command[0]} failed with {process.returncode}")
        return output


async def _read_output(process: asyncio.subprocess.Process, name: str) -> bytes:
    assert process.stdout is not None
    parts: list[bytes] = []
    size = 0
    while part := await process.stdout.read(2**16):
        size += len(part)
        if size > MOST_BYTES:
            raise Unavailable(f"{name} prints more than {MOST_BYTES // 2**20} MiB")
        parts.append(part)
    return b"".join(parts)


def _has_content(path: Path) -> bool:
    try:
        return bool(path.read_bytes().strip())
    except OSError:
        return False
