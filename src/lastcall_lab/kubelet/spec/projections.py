"""The files of configMap, secret, downwardAPI and projected volumes (pure)."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lastcall.adapters.kube.resources import Object
from lastcall_lab.kubelet.base.missing_dependency import MissingDependency
from lastcall_lab.kubelet.spec import field_refs
from lastcall_lab.kubelet.spec.environment import ConfigSource, Sources, source_data
from lastcall_lab.kubelet.spec.field_refs import PodLocation

Files = dict[str, tuple[bytes, int]]
"""Content and mode by relative path."""

Parts = Mapping[tuple[str, str], str]
"""Paths of the private copies of volume parts, by volume and ``subPath``."""

_MODE = 0o644
KINDS = ("configMap", "secret", "downwardAPI", "projected")


def projected_sources(volume: Object) -> list[tuple[str, Object]]:
    """The sources of a volume: kind and source. Empty for other kinds of volumes."""
    for kind in ("configMap", "secret", "downwardAPI"):
        if kind in volume:
            return [(kind, volume[kind])]
    sources = (volume.get("projected") or {}).get("sources") or ()
    return [(kind, source) for one in sources for kind, source in one.items()]


def is_projected(volume: Object) -> bool:
    """Whether the volume has projected files."""
    return any(kind in volume for kind in KINDS)


def files_below(files: Files, path: str) -> Files:
    """The file at a path, or all files below it if it is a directory."""
    wanted = posixpath.normpath(path)
    return {name: content for name, content in files.items() if name == wanted or name.startswith(f"{wanted}/")}


def config_sources_of(volume: Object) -> list[ConfigSource]:
    """The ConfigMaps and Secrets that the volume needs."""
    found = []
    for kind, source in projected_sources(volume):
        if kind == "configMap":
            found.append(ConfigSource("configmap", source.get("name", "")))
        elif kind == "secret":
            found.append(ConfigSource("secret", source.get("secretName") or source.get("name", "")))
    return found


def token_sources(volume: Object) -> Iterator[Object]:
    """The service account tokens that the volume needs."""
    return (source for kind, source in projected_sources(volume) if kind == "serviceAccountToken")


def projected_files(
    pod: Object, volume: Object, *, place: PodLocation, sources: Sources, tokens: Mapping[str, str]
) -> Files:
    """All files. ``token_sources`` are by path. MissingDependency names what does not exist."""
    kind = next(kind for kind in KINDS if kind in volume)
    mode = volume[kind].get("defaultMode") or _MODE
    found: Files = {}
    for part, source in projected_sources(volume):
        if part in ("configMap", "secret"):
            found.update(_files_of_object(part, source, mode, sources))
        elif part == "downwardAPI":
            found.update(_downward_files(pod, source.get("items") or (), mode, place))
        elif part == "serviceAccountToken":
            found[source["path"]] = (tokens[source["path"]].encode(), mode)
        else:
            raise MissingDependency(f"{part}: this kind of projection is not supported")
    return found


def _files_of_object(kind: str, source: Mapping[str, Any], mode: int, sources: Sources) -> Files:
    wanted = ConfigSource(kind.lower(), source.get("secretName") or source.get("name", ""))
    found = sources.get(wanted)
    if found is None:
        if source.get("optional"):
            return {}
        raise MissingDependency(f'{wanted.kind} "{wanted.name}" not found')
    content = source_data(wanted.kind, found)
    if not source.get("items"):
        return {key: (value, mode) for key, value in content.items()}
    answer: Files = {}
    for item in source["items"]:
        if item["key"] in content:
            answer[item["path"]] = (content[item["key"]], item.get("mode") or mode)
        elif not source.get("optional"):
            raise MissingDependency(f"references non-existent {wanted.kind} key: {item['key']}")
    return answer


def _downward_files(pod: Object, items: Iterable[Mapping[str, Any]], mode: int, place: PodLocation) -> Files:
    answer: Files = {}
    for item in items:
        if reference := item.get("resourceFieldRef"):
            name = reference.get("containerName")
            container = next((one for one in pod["spec"]["containers"] if one["name"] == name), {"name": name})
            text = field_refs.resource_value(container, reference, place)
        else:
            text = field_refs.field_value(pod, item["fieldRef"]["fieldPath"], place)
        answer[item["path"]] = (text.encode(), item.get("mode") or mode)
    return answer
