"""Builds container images from the machine's static busybox, without registry, compiler or docker."""

import gzip
import hashlib
import io
import json
import platform
import shutil
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX = "localhost/lastcall/busybox:lab"
"""The image of containers: a shell and small tools."""

PAUSE = "localhost/lastcall/pause:lab"
"""The image of sandboxes: the same files, with a process that only waits."""

_APPLETS = (
    "sh", "ash", "cat", "cp", "date", "echo", "env", "false", "head", "httpd", "id", "kill", "ls", "mkdir", "mv", "nc",
    "ps", "printf", "pwd", "rm", "sed", "seq", "sleep", "stty", "sync", "tail", "tar", "test", "touch", "tr", "true",
    "usleep", "wc", "wget",
)  # fmt: skip

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "ppc64le": "ppc64le", "s390x": "s390x"}

_OCI = "application/vnd.oci.image"


def find_busybox() -> str | None:
    """The path of a statically linked busybox; None if this machine has none."""
    path = shutil.which("busybox", path="/bin:/usr/bin:/sbin:/usr/sbin")
    return path if path and b"ld-linux" not in Path(path).read_bytes()[:4096] else None


def write_archive(archive: Path, busybox_path: str) -> None:
    """Writes an OCI image layout with both images as a tar archive for import."""
    layer = _image_layer(Path(busybox_path).read_bytes())
    packed = gzip.compress(layer, compresslevel=1, mtime=0)
    blobs = [packed]
    manifests = []
    for name, command in ((BUSYBOX, ["/bin/sh"]), (PAUSE, ["/bin/sleep", "2147483647"])):
        configuration = _encode_json(
            {
                "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
                "os": "linux",
                "config": {"Env": ["PATH=/bin"], "Entrypoint" if name == PAUSE else "Cmd": command},
                "rootfs": {"type": "layers", "diff_ids": [_sha256_digest(layer)]},
            }
        )
        manifest = _encode_json(
            {
                "schemaVersion": 2,
                "mediaType": f"{_OCI}.manifest.v1+json",
                "config": _blob_descriptor(configuration, f"{_OCI}.config.v1+json"),
                "layers": [_blob_descriptor(packed, f"{_OCI}.layer.v1.tar+gzip")],
            }
        )
        blobs += [configuration, manifest]
        annotations = {"io.containerd.image.name": name}
        manifests.append({**_blob_descriptor(manifest, f"{_OCI}.manifest.v1+json"), "annotations": annotations})
    files = {f"blobs/sha256/{_sha256_digest(blob).partition(':')[2]}": blob for blob in blobs}
    files["oci-layout"] = _encode_json({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = _encode_json({"schemaVersion": 2, "manifests": manifests})
    with tarfile.open(archive, "w") as tar:
        for path, content in files.items():
            _add_file(tar, path, content, 0o644)


def _image_layer(program: bytes) -> bytes:
    """The files of the images, as an uncompressed archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, mode in (("bin", 0o755), ("etc", 0o755), ("tmp", 0o1777)):
            directory = tarfile.TarInfo(path)
            directory.type, directory.mode = tarfile.DIRTYPE, mode
            tar.addfile(directory)
        _add_file(tar, "bin/busybox", program, 0o755)
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
    return buffer.getvalue()


def _add_file(tar: tarfile.TarFile, path: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(content), mode
    tar.addfile(info, io.BytesIO(content))


def _blob_descriptor(blob: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _sha256_digest(blob), "size": len(blob)}


def _sha256_digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
