"""The manifests of static pods in a directory, as a kubelet reads them (``pkg/kubelet/config/file.go``)."""

import asyncio
import logging
from pathlib import Path

from lastcall.adapters.kube.resources import Object
from lastcall.adapters.pods.static_pods import read_manifest
from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall_lab.kubelet.spec.static_pods import static_pod

log = logging.getLogger(__name__)


class ManifestFiles:
    """The directory of ``--pod-manifest-path``: one pod for each file that is not hidden, whatever its extension."""

    def __init__(self, directory: Path, node: str) -> None:
        self._directory = directory
        self._node = node
        self._told: frozenset[str] = frozenset()

    async def read(self) -> list[Object]:
        """The static pods, by file name. A file that cannot be read is logged and has no pod; so has no directory."""
        return await asyncio.to_thread(self._read_pods)

    def _read_pods(self) -> list[Object]:
        found, problems = [], []
        paths = sorted(self._directory.iterdir()) if self._directory.is_dir() else []
        for path in paths:
            if path.name.startswith(".") or not path.is_file():
                continue
            try:
                found.append(self._read_pod(path))
            except (InvalidInput, OSError) as error:
                problems.append(f"static pod: {error}")
        for problem in problems:
            if problem not in self._told:
                log.warning("%s", problem)
        self._told = frozenset(problems)
        return found

    def _read_pod(self, path: Path) -> Object:
        data = path.read_bytes()
        read_manifest(data, path.name, self._node)  # raises for what no kubelet would take
        [document, *others] = decoding.parse_documents(data, path.name)
        if others:
            raise InvalidInput(path.name, ["document: a manifest must hold one Pod"])
        return static_pod(document, node=self._node, source=str(path))
