"""Translates a pod's manifest for plain processes, and rejects what they cannot do."""

import os
import pwd
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lastcall.errors import InvalidInput
from lastcall.model.pods import Container, Pod

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The default PATH of containers: the usual one of images."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9]{0,126}[A-Za-z0-9])?")
_MAX_ID = 2**31 - 1


def find_program(program: str) -> str:
    """The path of a program on this machine, regardless of a container's own PATH; its name if not found."""
    return shutil.which(program, path=PATH) or program


class ContainerCommand(NamedTuple):
    """What it takes to run a program in a container: its main process, or a hook."""

    argv: tuple[str, ...]
    env: dict[str, str]
    directory: str
    user: tuple[int, int] | None  # uid and gid; None: our own
    links: tuple[tuple[str, str], ...] = ()
    """mountPaths, and the paths of their volumes on this machine."""
    inside: int = 0
    """The process whose mount namespace the program runs in; 0: our own."""

    @property
    def enter_arguments(self) -> list[str]:
        """The start of the command line, which enters the container; the directory is a path inside it."""
        if not self.inside:
            return []
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        enter = [find_program("nsenter"), f"--target={self.inside}", "--mount", *user, "--"]
        return [*enter, find_program("env"), f"--chdir={self.directory}"]


def container_command(pod: Pod, container: Container) -> ContainerCommand:
    """The main process of a container that has passed ``check_manifest``; the pod has its address."""
    uid, gid = _resolve_user(pod, container)
    user = None if (uid, gid) == (os.geteuid(), os.getegid()) else (uid, gid)
    argv = (*(container.command or ()), *(container.args or ()))
    links = tuple((one.mount_path, one.host_path) for one in container.volume_mounts or () if one.host_path)
    return ContainerCommand(argv, _build_environment(pod, container, uid), container.working_dir or "/", user, links)


def check_manifest(pod: Pod) -> None:
    """Raises InvalidInput with every field that is not supported; no relevant field is ignored silently."""
    violations = [*_metadata_violations(pod), *_name_violations(pod)]
    for field, container in _container_fields(pod):
        violations += _container_violations(f"{field}.", pod, container)
    if violations:
        raise InvalidInput(f"pod {pod.key}", violations)


def check_pod(pod: Pod) -> None:
    """The same check for what the pod's containers share, and for their names."""
    if violations := [*_metadata_violations(pod), *_name_violations(pod)]:
        raise InvalidInput(f"pod {pod.key}", violations)


def check_container(pod: Pod, container: Container) -> None:
    """The same check for one container."""
    if violations := list(_container_violations("", pod, container)):
        raise InvalidInput(f"pod {pod.key}, container {container.name}", violations)


def _container_violations(at: str, pod: Pod, container: Container) -> Iterator[str]:
    yield from _command_violations(at, pod, container)
    yield from _security_violations(at, pod, container)
    yield from _mount_violations(at, pod, container)


def _container_fields(pod: Pod) -> Iterator[tuple[str, Container]]:
    for index, container in enumerate(pod.spec.init_containers or ()):
        yield f"spec.initContainers[{index}]", container
    for index, container in enumerate(pod.spec.containers):
        yield f"spec.containers[{index}]", container


def _metadata_violations(pod: Pod) -> Iterator[str]:
    """Checks the names that become parts of a path."""
    if not _NAME.fullmatch(pod.metadata.name):
        yield f'metadata.name: "{pod.metadata.name}": must be a DNS subdomain of lower case'
    if not _LABEL.fullmatch(pod.metadata.namespace):
        yield f'metadata.namespace: "{pod.metadata.namespace}": must be a DNS label of lower case'
    if not _UID.fullmatch(pod.metadata.uid):
        yield f'metadata.uid: "{pod.metadata.uid}": must be letters, digits and hyphens'


def _name_violations(pod: Pod) -> Iterator[str]:
    if not pod.spec.containers:
        yield "spec.containers: must not be empty"
    seen: set[str] = set()
    for field, container in _container_fields(pod):
        if not _LABEL.fullmatch(container.name):
            yield f'{field}.name: "{container.name}": must be a DNS label of lower case'
        if container.name in seen:
            yield f'{field}.name: "{container.name}": two containers have this name'
        seen.add(container.name)


def _command_violations(at: str, pod: Pod, container: Container) -> Iterator[str]:
    env = _build_environment(pod, container, os.geteuid())
    for name, value in env.items():
        if not name or "=" in name or "\0" in name + value:
            yield f'{at}env: "{name}": must be a name without "=", and neither it nor its value may contain NUL'
    directory = container.working_dir or "/"
    if not Path(directory).is_absolute() or not Path(directory).is_dir():
        yield f'{at}workingDir: "{directory}": must be the absolute path of a directory of this machine'
    if not container.command:
        yield f"{at}command: required, since a process has no image that could name a program"
    elif "=" in container.command[0] or not _is_program(container.command[0], env["PATH"], directory):
        yield f'{at}command[0]: "{container.command[0]}": must be a program, looked for in {env["PATH"]}'


def _is_program(name: str, path: str, directory: str) -> bool:
    return shutil.which(Path(directory) / name if "/" in name else name, path=path) is not None


def _security_violations(at: str, pod: Pod, container: Container) -> Iterator[str]:
    own = (os.geteuid(), os.getegid())
    for field, wanted, mine in zip(("runAsUser", "runAsGroup"), _requested_user(pod, container), own, strict=True):
        if wanted is None:
            continue
        if not 0 <= wanted <= _MAX_ID:
            yield f"{at}securityContext.{field}: {wanted}: must be between 0 and {_MAX_ID}"
        elif own[0] != 0 and wanted != mine:
            yield f"{at}securityContext.{field}: {wanted}: only root can run processes as others; this is {mine}"


def _mount_violations(at: str, pod: Pod, container: Container) -> Iterator[str]:
    volumes = {volume.name: volume for volume in pod.spec.volumes or ()}
    for index, mount in enumerate(container.volume_mounts or ()):
        field = f"{at}volumeMounts[{index}]"
        volume = volumes.get(mount.name)
        if mount.host_path:
            continue
        if volume is None:
            yield f'{field}.name: "{mount.name}": no volume has this name'
        elif volume.host_path is None:
            kind = "an emptyDir needs" if volume.empty_dir else "this kind of volume needs"
            yield f'{field}.name: "{mount.name}": {kind} a mount namespace; processes have hostPath alone'
        elif os.path.normpath(volume.host_path.path) != os.path.normpath(mount.mount_path):
            path = volume.host_path.path
            yield f'{field}.mountPath: "{mount.mount_path}": must be the hostPath itself, "{path}", without namespaces'


def _requested_user(pod: Pod, container: Container) -> tuple[int | None, int | None]:
    """User and group in the manifest; the container's override the pod's (v1.SecurityContext)."""
    contexts = [context for context in (container.security_context, pod.spec.security_context) if context]
    uid = next((context.run_as_user for context in contexts if context.run_as_user is not None), None)
    gid = next((context.run_as_group for context in contexts if context.run_as_group is not None), None)
    return uid, gid


def _resolve_user(pod: Pod, container: Container) -> tuple[int, int]:
    """The ids to use. Without runAsGroup it is the user's primary group; for an unknown user, its own number."""
    uid, gid = _requested_user(pod, container)
    if uid is None:
        return os.geteuid(), os.getegid() if gid is None else gid
    if gid is None:
        entry = _find_account(uid)
        gid = entry.pw_gid if entry else uid
    return uid, gid


def _find_account(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def _build_environment(pod: Pod, container: Container, uid: int) -> dict[str, str]:
    """The environment, which contains nothing of our own."""
    entry = _find_account(uid)
    ours = {
        "PATH": PATH,
        "HOME": entry.pw_dir if entry else "/",
        "LANG": "C.UTF-8",
        "POD_IP": pod.status.pod_ip,
        "POD_NAME": pod.metadata.name,
        "POD_NAMESPACE": pod.metadata.namespace,
        "POD_UID": pod.metadata.uid,
    }
    return ours | {variable.name: variable.value for variable in container.env or ()}
