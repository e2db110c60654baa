"""Webhooks that the API servers of this machine load from files (KEP-5793), as static pods of kube-apiserver name them."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final

from lastcall.adapters.doctor.file_facts import read_regular_file, read_regular_files
from lastcall.adapters.host.kubelet_process import path_below
from lastcall.doctor.facts import HostFile
from lastcall.errors import InvalidInput
from lastcall.model.decoding import parse_documents

_PROGRAM: Final = "kube-apiserver"
_OPTION: Final = "--admission-control-config-file="
_PLUGINS: Final = ("ValidatingAdmissionWebhook", "MutatingAdmissionWebhook")


def read_static_webhooks(root: Path, manifests: Iterable[HostFile]) -> tuple[HostFile, ...]:
    """The files of ``staticManifestsDir`` of each API server among the static pods. OSError if one cannot be read."""
    return tuple(
        file
        for manifest in manifests
        for pod in _mappings(manifest)
        for container in _containers(pod)
        for path in _directories(root, pod, container)
        for file in read_regular_files(path)
    )


def _mappings(file: HostFile) -> list[dict[str, Any]]:
    """The documents of a file; none of one that cannot be read, which its reader passes over too."""
    try:
        return [one for one in parse_documents(file.data, file.path) if isinstance(one, dict)]
    except InvalidInput:
        return []


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    spec = pod.get("spec")
    found = spec.get("containers") if isinstance(spec, dict) else None
    return (one for one in (found if isinstance(found, list) else ()) if isinstance(one, dict))


def _directories(root: Path, pod: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[Path]:
    """The directories with webhooks that an API server loads, on the host."""
    words = [str(one) for one in (*(container.get("command") or ()), *(container.get("args") or ()))]
    if not any(word.rpartition("/")[2] == _PROGRAM for word in words):
        return
    for option in [word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)][-1:]:
        config = _host_path(root, pod, container, option)
        for document in _mappings(read_regular_file(config)) if config else ():
            for name in _static_directories(document):
                if path := _host_path(root, pod, container, name):
                    yield path


def _static_directories(document: Mapping[str, Any]) -> Iterator[str]:
    """``staticManifestsDir`` of the plugins for webhooks in an AdmissionConfiguration."""
    for plugin in document.get("plugins") or ():
        settings = plugin.get("configuration") if isinstance(plugin, dict) else None
        if isinstance(settings, dict) and plugin.get("name") in _PLUGINS and settings.get("staticManifestsDir"):
            yield str(settings["staticManifestsDir"])


def _host_path(root: Path, pod: Mapping[str, Any], container: Mapping[str, Any], path: str) -> Path | None:
    """Where a path of the container is on the host; None if no volume of the host is there."""
    volumes = {
        one["name"]: (one.get("hostPath") or {}).get("path", "")
        for one in pod["spec"].get("volumes") or ()
        if "name" in one
    }
    inside = PurePosixPath(path)
    mounts = [
        (PurePosixPath(one["mountPath"]), volumes.get(one.get("name"), ""))
        for one in container.get("volumeMounts") or ()
        if "mountPath" in one and inside.is_relative_to(one["mountPath"])
    ]
    if not mounts:
        return None
    mounted, on_host = max(mounts, key=lambda found: len(found[0].parts))
    return path_below(root, str(PurePosixPath(on_host) / inside.relative_to(mounted))) if on_host else None
