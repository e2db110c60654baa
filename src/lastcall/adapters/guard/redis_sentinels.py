"""Asks Sentinels for the group of one name, and has one of them fail over."""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from lastcall.adapters.guard.redis_members import RedisDoor, ask_all
from lastcall.adapters.guard.redis_sentinel_state import SentinelAnswer, SentinelView, parse_master, parse_replica
from lastcall.adapters.guard.resp import RedisConnection, RedisError, RedisValue
from lastcall.errors import LastcallError
from lastcall.model.pods import Pod

ServerAddress = tuple[str, int]
"""Host and port as a Sentinel announces them; the host may be a name."""

_TILTED: Final = "sentinel_tilt:1"


class RedisSentinels:
    """The Sentinels of a group; ``name`` is that of its master in their configuration."""

    def __init__(self, door: RedisDoor, name: str) -> None:
        self._door = door
        self._name = name

    async def read_view(self, pods: Sequence[Pod], *, leaving: Pod) -> SentinelView:
        """What all say. LastcallError if one of them does not know the group, or refuses the password."""
        found = await ask_all(pods, self._read)
        answers = {pod.metadata.name: one for pod, one in found if isinstance(one, SentinelAnswer)}
        silent = {pod.metadata.name: one for pod, one in found if isinstance(one, str)}
        is_inside = any(pod.metadata.uid == leaving.metadata.uid for pod in pods)
        return SentinelView(
            answers=dict(sorted(answers.items())), silent=silent, leaving=leaving.metadata.name if is_inside else ""
        )

    async def fail_over(self, pod: Pod, master: ServerAddress) -> None:
        """Has the Sentinel of this pod begin a failover away from the master.

        Without effect if one is in progress, or the Sentinel has another master by now. RedisError if it refuses.
        """
        async with self._door.connect(pod) as sentinel:
            if await self._read_address(sentinel) != master:
                return
            try:
                await sentinel.call("SENTINEL", "FAILOVER", self._name)
            except RedisError as error:
                if "INPROG" not in str(error):
                    raise

    async def read_address(self, pod: Pod) -> ServerAddress:
        """Where the Sentinel of this pod has the master now: the new one as soon as that is promoted."""
        async with self._door.connect(pod) as sentinel:
            return await self._read_address(sentinel)

    async def _read_address(self, sentinel: RedisConnection) -> ServerAddress:
        match await sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._name):
            case [str(address), str(port)] if port.isdecimal():
                return address, int(port)
            case other:
                raise LastcallError(f"the address of the master {self._name} is not understood: {other!r}")

    async def _read(self, pod: Pod) -> SentinelAnswer:
        async with self._door.connect(pod) as sentinel:
            master = parse_master(_to_mapping(await sentinel.call("SENTINEL", "MASTER", self._name)))
            listed = await sentinel.call("SENTINEL", "REPLICAS", self._name)
            return replace(
                master,
                replicas=tuple(parse_replica(_to_mapping(one)) for one in listed) if isinstance(listed, list) else (),
                shortage=await self._check_quorum(sentinel),
                is_tilted=_TILTED in str(await sentinel.call("INFO", "sentinel")),
            )

    async def _check_quorum(self, sentinel: RedisConnection) -> str:
        try:
            await sentinel.call("SENTINEL", "CKQUORUM", self._name)
        except RedisError as error:
            text = str(error)
            if "NOQUORUM" not in text:
                raise
            return text[text.index("NOQUORUM") :]
        return ""


def _to_mapping(value: RedisValue) -> Mapping[str, str]:
    """Names and values in turn, as RESP2 has them."""
    words = [str(one) for one in value] if isinstance(value, list) else []
    return dict(zip(words[::2], words[1::2], strict=False))
