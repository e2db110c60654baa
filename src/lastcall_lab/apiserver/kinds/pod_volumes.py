"""Validation of a pod's volumes and their mounts (``pkg/apis/core/validation``), pure."""

from collections.abc import Callable, Iterator, Mapping

from lastcall.model import name_rules, quantities
from lastcall_lab.apiserver.kinds import pod_value_rules
from lastcall_lab.apiserver.values import field_errors
from lastcall_lab.apiserver.values.api_errors import Cause
from lastcall_lab.apiserver.values.request import Object

Volumes = Mapping[str, Object]
"""The valid volumes of a pod by name; mounts of invalid ones are not found."""

_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_ONE = "may not specify more than 1 volume type"


def validate_volumes(volumes: list[Object], path: str) -> tuple[Volumes, list[Cause]]:
    """The valid volumes, and the violations in the others."""
    good: dict[str, Object] = {}
    causes: list[Cause] = []
    for index, volume in enumerate(volumes):
        wrong = [*_volume(volume, f"{path}[{index}]", good)]
        if wrong:
            causes += wrong
        else:
            good[volume["name"]] = volume
    return good, causes


def _volume(volume: Object, path: str, known: Volumes) -> Iterator[Cause]:
    name = volume.get("name", "")
    sources = [source for source in volume if source != "name"]
    yield from _sources(volume, sources, path)
    if not name:
        yield field_errors.value_required(f"{path}.name")
    elif wrong := name_rules.dns_label_error(name):
        yield field_errors.invalid(f"{path}.name", name, wrong)
    if name in known:
        yield field_errors.duplicate(f"{path}.name", name)


def _sources(volume: Object, sources: list[str], path: str) -> Iterator[Cause]:
    if not sources:
        yield field_errors.value_required(path, "must specify a volume type")
    for source in sorted(sources, key=lambda one: one != "emptyDir"):
        if source != "emptyDir" and len(sources) > 1 and source != sources[0]:
            yield field_errors.forbidden(f"{path}.{source}", _ONE)
        elif check := _CHECKS.get(source):
            yield from check(volume[source], f"{path}.{source}")


def _empty_dir(source: Object, path: str) -> Iterator[Cause]:
    limit = source.get("sizeLimit")
    if limit is not None and quantities.parse_quantity(str(limit)) < 0:
        yield field_errors.forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Object, path: str) -> Iterator[Cause]:
    if not source.get("path"):
        yield field_errors.value_required(f"{path}.path")
        return
    if wrong := pod_value_rules.backstep_error(source["path"]):
        yield field_errors.invalid(f"{path}.path", source["path"], wrong)
    if source.get("type", "") not in _PATH_TYPES:
        yield field_errors.not_supported(f"{path}.type", source["type"], _PATH_TYPES)


def _secret(source: Object, path: str) -> Iterator[Cause]:
    if not source.get("secretName"):
        yield field_errors.value_required(f"{path}.secretName")
    yield from _key_violations(source, path)


def _config_map(source: Object, path: str) -> Iterator[Cause]:
    if not source.get("name"):
        yield field_errors.value_required(f"{path}.name")
    yield from _key_violations(source, path)


def _key_violations(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode(source, "defaultMode", path)
    for index, item in enumerate(source.get("items") or ()):
        place = f"{path}.items[{index}]"
        if not item.get("key"):
            yield field_errors.value_required(f"{place}.key")
        yield from _file(item, place)


def _file(item: Object, path: str) -> Iterator[Cause]:
    if not item.get("path"):
        yield field_errors.value_required(f"{path}.path")
    elif wrong := pod_value_rules.file_path_error(item["path"]):
        yield field_errors.invalid(f"{path}.path", item["path"], wrong)
    yield from _mode(item, "mode", path)


def _mode(source: Object, name: str, path: str) -> Iterator[Cause]:
    if (mode := source.get(name)) is not None and not 0 <= mode <= 0o777:
        yield field_errors.invalid(f"{path}.{name}", mode, pod_value_rules.MODE_RULE)


def _downward(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode(source, "defaultMode", path)
    for index, item in enumerate(source.get("items") or ()):
        place = f"{path}.items[{index}]"
        yield from _file(item, place)
        if ("fieldRef" in item) == ("resourceFieldRef" in item):
            if "fieldRef" in item:
                yield field_errors.invalid(
                    place, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously"
                )
            else:
                yield field_errors.value_required(place, "one of fieldRef and resourceFieldRef is required")


def _claim(source: Object, path: str) -> Iterator[Cause]:
    if not source.get("claimName"):
        yield field_errors.value_required(f"{path}.claimName")


def _projection_violations(source: Object, path: str) -> Iterator[Cause]:
    yield from _mode(source, "defaultMode", path)
    for index, one in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        if not one:
            yield field_errors.value_required(place, "must specify a source type")
        for name in ("secret", "configMap"):
            if name in one:
                if not one[name].get("name"):
                    yield field_errors.value_required(f"{place}.{name}.name")
                yield from _key_violations(one[name], f"{place}.{name}")
        if "downwardAPI" in one:
            yield from _downward(one["downwardAPI"], f"{place}.downwardAPI")
        if token := one.get("serviceAccountToken"):
            yield from _token(token, f"{place}.serviceAccountToken")


def _token(token: Object, path: str) -> Iterator[Cause]:
    seconds = token.get("expirationSeconds", 3600)
    if seconds < 600:
        yield field_errors.invalid(
            f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"
        )
    if seconds > 1 << 32:
        yield field_errors.invalid(
            f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds"
        )
    if not token.get("path"):
        yield field_errors.value_required(f"{path}.path")
    elif wrong := pod_value_rules.file_path_error(token["path"]):
        yield field_errors.invalid(f"{path}.path", token["path"], wrong)


def _csi(source: Object, path: str) -> Iterator[Cause]:
    driver = source.get("driver", "")
    if not driver:
        yield field_errors.value_required(f"{path}.driver")
    elif wrong := name_rules.subdomain_error(driver.lower()):
        yield field_errors.invalid(f"{path}.driver", driver, wrong)


def _ephemeral(source: Object, path: str) -> Iterator[Cause]:
    if not source.get("volumeClaimTemplate"):
        yield field_errors.value_required(f"{path}.volumeClaimTemplate")


def _nfs(source: Object, path: str) -> Iterator[Cause]:
    for name in ("server", "path"):
        if not source.get(name):
            yield field_errors.value_required(f"{path}.{name}")
    if source.get("path") and not source["path"].startswith("/"):
        yield field_errors.invalid(f"{path}.path", source["path"], "must be an absolute path")


_CHECKS: Mapping[str, Callable[[Object, str], Iterator[Cause]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "persistentVolumeClaim": _claim,
    "projected": _projection_violations,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "nfs": _nfs,
}


def validate_mounts(container: Object, volumes: Volumes, path: str) -> Iterator[Cause]:
    """Validates the volume mounts of a container."""
    seen: set[str] = set()
    devices = {device.get("name"): device.get("devicePath") for device in container.get("volumeDevices") or ()}
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        place, name, target = f"{path}.volumeMounts[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield field_errors.value_required(f"{place}.name")
        if name not in volumes:
            yield field_errors.not_found(f"{place}.name", name)
        if not target:
            yield field_errors.value_required(f"{place}.mountPath")
        if target in seen:
            yield field_errors.invalid(f"{place}.mountPath", target, "must be unique")
        seen.add(target)
        if name in devices:
            yield field_errors.invalid(f"{place}.name", name, "must not already exist in volumeDevices")
        if target in devices.values():
            yield field_errors.invalid(
                f"{place}.mountPath", target, "must not already exist as a path in volumeDevices"
            )
        yield from _sub_path_violations(mount, place, f"{path}.volumeMounts")
        yield from _propagation(mount, container, f"{path}.volumeMounts.mountPropagation")


def _sub_path_violations(mount: Object, place: str, path: str) -> Iterator[Cause]:
    """Messages name the list instead of the mount, as in Kubernetes."""
    if "subPath" in mount and (wrong := pod_value_rules.inner_path_error(mount["subPath"])):
        yield field_errors.invalid(f"{path}.subPath", mount["subPath"], wrong)
    if expression := mount.get("subPathExpr"):
        if mount.get("subPath"):
            yield field_errors.invalid(
                f"{place}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive"
            )
        if wrong := pod_value_rules.inner_path_error(expression):
            yield field_errors.invalid(f"{path}.subPathExpr", expression, wrong)


def _propagation(mount: Object, container: Object, path: str) -> Iterator[Cause]:
    if (mode := mount.get("mountPropagation")) is None:
        return
    if mode not in _PROPAGATIONS:
        yield field_errors.not_supported(path, mode, _PROPAGATIONS)
    elif mode == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
        yield field_errors.forbidden(path, "Bidirectional mount propagation is available only to privileged containers")


def validate_devices(container: Object, volumes: Volumes, path: str) -> Iterator[Cause]:
    """Validates the block devices of a container."""
    seen: set[str] = set()
    mounts = {mount.get("name"): mount.get("mountPath") for mount in container.get("volumeMounts") or ()}
    for index, device in enumerate(container.get("volumeDevices") or ()):
        place, name, target = f"{path}.volumeDevices[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            yield field_errors.value_required(f"{place}.name")
        if name not in volumes:
            yield field_errors.not_found(f"{place}.name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield field_errors.invalid(f"{place}.name", name, why)
        if not target:
            yield field_errors.value_required(f"{place}.devicePath")
        if target in seen:
            yield field_errors.invalid(f"{place}.devicePath", target, "must be unique")
        seen.add(target)
        if name in mounts:
            yield field_errors.invalid(f"{place}.name", name, "must not already exist in volumeMounts")
        if target in mounts.values():
            yield field_errors.invalid(
                f"{place}.devicePath", target, "must not already exist as a path in volumeMounts"
            )
