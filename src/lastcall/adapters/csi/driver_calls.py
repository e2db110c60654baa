"""Calls to the node service of a CSI driver, over the socket that it has registered with the kubelet."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpclib.client import Channel
from grpclib.encoding.proto import ProtoCodec
from grpclib.exceptions import GRPCError, ProtocolError, StreamTerminatedError

from lastcall.adapters.csi.api import csi_grpc, csi_pb2, registration_grpc, registration_pb2
from lastcall.errors import Unavailable

ANSWER_SECONDS = 5.0
"""Seconds for an answer that needs no work."""

_FAILURES = (GRPCError, StreamTerminatedError, ProtocolError, OSError)  # a TimeoutError is an OSError


class CsiDrivers:
    """The drivers of a kubelet with this root directory. Every method raises Unavailable with the reason."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def unpublish(self, driver: str, handle: str, target: str, *, within: float) -> None:
        """NodeUnpublishVolume."""
        request = csi_pb2.NodeUnpublishVolumeRequest(volume_id=handle, target_path=target)
        async with self._node_service(driver, "NodeUnpublishVolume") as node:
            await node.NodeUnpublishVolume(request, timeout=within)

    async def ask_capabilities(self, driver: str) -> None:
        """NodeGetCapabilities: returns if the driver answers."""
        async with self._node_service(driver, "NodeGetCapabilities") as node:
            await node.NodeGetCapabilities(csi_pb2.NodeGetCapabilitiesRequest(), timeout=ANSWER_SECONDS)

    async def unstage(self, driver: str, handle: str, stage: str, *, within: float) -> None:
        """NodeUnstageVolume, if the driver has the capability STAGE_UNSTAGE_VOLUME."""
        request = csi_pb2.NodeUnstageVolumeRequest(volume_id=handle, staging_target_path=stage)
        async with self._node_service(driver, "NodeUnstageVolume") as node:
            answer = await node.NodeGetCapabilities(csi_pb2.NodeGetCapabilitiesRequest(), timeout=ANSWER_SECONDS)
            kinds = [capability.rpc.type for capability in answer.capabilities]
            if csi_pb2.NodeServiceCapability.RPC.STAGE_UNSTAGE_VOLUME in kinds:
                await node.NodeUnstageVolume(request, timeout=within)

    @asynccontextmanager
    async def _node_service(self, driver: str, verb: str) -> AsyncIterator[Any]:
        path = await self._find_socket(driver)
        async with _open_channel(path, f"{driver}: {verb}") as channel:
            yield csi_grpc.NodeStub(channel)

    async def _find_socket(self, driver: str) -> str:
        """The usual path; if it does not exist, the one that the driver's registration names."""
        usual, registrations = await asyncio.to_thread(self._list_sockets, driver)
        if usual:
            return usual
        for registered in registrations:
            try:
                async with _open_channel(registered, "GetInfo") as channel:
                    stub = registration_grpc.RegistrationStub(channel)
                    info = await stub.GetInfo(registration_pb2.InfoRequest(), timeout=ANSWER_SECONDS)
            except Unavailable:
                continue  # of another plugin, which has ended
            if info.type == "CSIPlugin" and info.name == driver:
                return str(info.endpoint).removeprefix("unix://")
        raise Unavailable(f"the driver {driver} has no socket below {self._root}: it does not run")

    def _list_sockets(self, driver: str) -> tuple[str, Sequence[str]]:
        usual = self._root / "plugins" / driver / "csi.sock"
        registrations = sorted((self._root / "plugins_registry").glob("*.sock"))
        return str(usual) if usual.exists() else "", [str(path) for path in registrations]


@asynccontextmanager
async def _open_channel(path: str, what: str) -> AsyncIterator[Channel]:
    channel = Channel(path=path, codec=ProtoCodec())
    try:
        yield channel
    except GRPCError as error:
        raise Unavailable(f"{what}: {error.message or error.status.name}") from error
    except TimeoutError as error:
        raise Unavailable(f"{what}: the driver has not answered in time") from error
    except _FAILURES as error:
        raise Unavailable(f"{what}: {path}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        channel.close()
