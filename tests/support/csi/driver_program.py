# ruff: noqa: N802 - the names are those of the CSI
"""A small CSI driver: each volume is a tmpfs at its staging path, bind-mounted at its target paths.

Below a directory ``volumeDevices`` it is a loop device instead, whose file is in DIRECTORY.

    python driver_program.py NAME SOCKET DIRECTORY [REGISTRATION_SOCKET]

Appends a line for each call to DIRECTORY/calls. DIRECTORY/behaviour has lines ``METHOD VERB``: the verb is ``hang``,
``fail`` or ``lie`` (answers OK and does nothing).
"""

import asyncio
import subprocess
import sys
from pathlib import Path

from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server, Stream

from lastcall.adapters.csi.api import csi_grpc, csi_pb2, registration_grpc, registration_pb2
from lastcall.adapters.csi.loop_devices import list_loop_devices


class Node(csi_grpc.NodeBase):
    def __init__(self, name: str, directory: Path) -> None:
        self.name, self.directory = name, directory

    async def NodeStageVolume(self, stream: Stream) -> None:
        request = await stream.recv_message()
        if not await self.acts("NodeStageVolume", request.volume_id):
            pass
        elif is_block(request.staging_target_path):
            self.attach_device(request.volume_id)
        elif not is_mounted(request.staging_target_path):
            mount("-t", "tmpfs", "-o", "size=1m", f"csi-{request.volume_id}", request.staging_target_path)
        await stream.send_message(csi_pb2.NodeStageVolumeResponse())

    async def NodeUnstageVolume(self, stream: Stream) -> None:
        request = await stream.recv_message()
        if not await self.acts("NodeUnstageVolume", request.volume_id):
            pass
        elif is_block(request.staging_target_path):
            self.detach_device(request.volume_id)
        elif is_mounted(request.staging_target_path):
            run("umount", request.staging_target_path)
        await stream.send_message(csi_pb2.NodeUnstageVolumeResponse())

    async def NodePublishVolume(self, stream: Stream) -> None:
        request = await stream.recv_message()
        target = Path(request.target_path)
        if await self.acts("NodePublishVolume", request.volume_id) and not is_mounted(request.target_path):
            block = is_block(request.target_path)
            target.touch() if block else target.mkdir(exist_ok=True)
            source = self.device_of(request.volume_id) if block else request.staging_target_path
            mount("--bind", source, request.target_path)
        await stream.send_message(csi_pb2.NodePublishVolumeResponse())

    async def NodeUnpublishVolume(self, stream: Stream) -> None:
        request = await stream.recv_message()
        if await self.acts("NodeUnpublishVolume", request.volume_id):
            if is_mounted(request.target_path):
                run("umount", request.target_path)
            target = Path(request.target_path)
            if target.exists():
                target.rmdir() if target.is_dir() else target.unlink()
        await stream.send_message(csi_pb2.NodeUnpublishVolumeResponse())

    async def NodeGetCapabilities(self, stream: Stream) -> None:
        await stream.recv_message()
        await self.acts("NodeGetCapabilities", "")
        kind = csi_pb2.NodeServiceCapability.RPC.STAGE_UNSTAGE_VOLUME
        rpc = csi_pb2.NodeServiceCapability(rpc=csi_pb2.NodeServiceCapability.RPC(type=kind))
        await stream.send_message(csi_pb2.NodeGetCapabilitiesResponse(capabilities=[rpc]))

    async def NodeGetInfo(self, stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_message(csi_pb2.NodeGetInfoResponse(node_id="this-node"))

    def device_of(self, volume: str) -> str:
        """The loop device of the volume's file; "" if there is none."""
        return "".join(list_loop_devices([str(self.directory / f"{volume}.img")]))

    def attach_device(self, volume: str) -> None:
        file = self.directory / f"{volume}.img"
        if not file.exists():
            file.write_bytes(bytes(1 << 20))
        if not self.device_of(volume):
            run("losetup", "--find", str(file))

    def detach_device(self, volume: str) -> None:
        """The kernel keeps a device that somebody has open, and detaches it later."""
        if device := self.device_of(volume):
            run("losetup", "--detach", device)
        if self.device_of(volume):
            raise GRPCError(Status.INTERNAL, f"{device} is in use")

    async def acts(self, method: str, volume: str) -> bool:
        """Records the call and behaves as the file demands; whether the call shall do its work."""
        with (self.directory / "calls").open("a") as calls:
            calls.write(f"{method} {volume}\n")
        behaviour = self.directory / "behaviour"
        lines = behaviour.read_text().splitlines() if behaviour.exists() else []
        verb = dict(line.split() for line in lines).get(method, "")
        if verb == "hang":
            await asyncio.sleep(3600)
        if verb == "fail":
            raise GRPCError(Status.INTERNAL, "the device is busy")
        return verb != "lie"


class Registration(registration_grpc.RegistrationBase):
    def __init__(self, name: str, endpoint: str) -> None:
        self.name, self.endpoint = name, endpoint

    async def GetInfo(self, stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_message(
            registration_pb2.PluginInfo(
                type="CSIPlugin", name=self.name, endpoint=self.endpoint, supported_versions=["1.0.0"]
            )
        )

    async def NotifyRegistrationStatus(self, stream: Stream) -> None:
        await stream.recv_message()
        await stream.send_message(registration_pb2.RegistrationStatusResponse())


def is_block(path: str) -> bool:
    return "volumeDevices" in Path(path).parts


def is_mounted(path: str) -> bool:
    return any(line.split(" ")[4] == path for line in Path("/proc/self/mountinfo").read_text().splitlines())


def mount(*arguments: str) -> None:
    run("mount", *arguments)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


async def serve(name: str, socket: str, directory: str, registration: str = "") -> None:
    servers = []
    for path, service in (
        (socket, Node(name, Path(directory))),
        (registration, Registration(name, socket)),
    ):
        if path:
            Path(path).unlink(missing_ok=True)
            servers.append(Server([service]))
            await servers[-1].start(path=path)
    Path(directory, "ready").touch()
    await servers[0].wait_closed()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
