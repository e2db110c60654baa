"""Node and pod status as files, in the form in which a kubelet sends them to the API server.

``node.json`` and ``pods/<namespace>_<name>.json`` are small, so they are written synchronously.
"""

from pathlib import Path
from typing import Any

import msgspec


class StatusFiles:
    """Objects below a directory; each write replaces a file atomically."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "pods").mkdir(parents=True, exist_ok=True)

    def write_node(self, node: dict[str, Any]) -> None:
        """Writes the v1.Node."""
        self._replace_file(self._directory / "node.json", node)

    def write_pod(self, pod: dict[str, Any]) -> None:
        """Writes a v1.Pod."""
        metadata = pod["metadata"]
        self._replace_file(self._directory / "pods" / f"{metadata['namespace']}_{metadata['name']}.json", pod)

    def read_pod(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The last written pod, by this process or an earlier one."""
        try:
            data = (self._directory / "pods" / f"{namespace}_{name}.json").read_bytes()
            pod: dict[str, Any] = msgspec.json.decode(data)
        except (OSError, msgspec.DecodeError):
            return None
        return pod

    @staticmethod
    def _replace_file(path: Path, what: dict[str, Any]) -> None:
        temporary = path.with_name(f".tmp-{path.name}")
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(what), indent=2) + b"\n")
        temporary.replace(path)
