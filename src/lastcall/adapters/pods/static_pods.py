"""Pod manifests in a directory, read and validated by the kubelet's rules for static pods (--pod-manifest-path)."""

import hashlib
import logging
import os
import re
from pathlib import Path

from msgspec import structs

from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall.model.pods import Container, ObjectMetadata, Pod

log = logging.getLogger(__name__)

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_HOOKS = ("exec", "httpGet", "sleep", "tcpSocket")

_LONGEST = 10 << 20
"""Largest manifest in bytes, as in the kubelet (pkg/kubelet/config/common.go: maxConfigLength)."""


def read_directory(directory: Path, node_name: str) -> tuple[list[Pod], list[InvalidInput]]:
    """The pods of all manifests, by file name, and the errors of the others. Raises OSError if it cannot be listed.

    As in the kubelet (pkg/kubelet/config/file.go: extractFromDir), every file is a manifest whatever its extension,
    unless it is hidden. Other entries, such as directories or dangling links, are skipped. The cause of the error for
    an unreadable file is an OSError.
    """
    pods: list[Pod] = []
    errors: list[InvalidInput] = []
    seen: dict[str, str] = {}
    for path in sorted(directory.iterdir()):
        if path.name.startswith("."):
            continue
        try:
            for pod in read_manifest(_read_content(path), path.name, node_name):
                if pod.key in seen:
                    raise InvalidInput(path.name, [f"metadata.name: {pod.key} stands in {seen[pod.key]} already"])
                seen[pod.key] = path.name
                pods.append(pod)
        except InvalidInput as error:
            errors.append(error)
    return pods, errors


def _read_content(path: Path) -> bytes:
    """The content of a file or of a link's target. Raises InvalidInput."""
    try:
        if not path.is_file():  # opening a pipe would block until it has a writer
            raise InvalidInput(path.name, ["is no file: passed over"])
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except OSError as error:
        raise InvalidInput(path.name, [f"cannot be read: {error.strerror}"]) from error
    if len(data) > _LONGEST:
        raise InvalidInput(path.name, [f"must not have more than {_LONGEST} bytes"])
    return data


class StaticPods:
    """The pods of a directory of manifests by namespace and name, read again when a file has changed.

    An invalid manifest is logged, once for each version, and skipped. An unreadable file is tried again at each call;
    until then its last known pods stay.
    """

    def __init__(self, directory: Path, node_name: str) -> None:
        self._directory = directory
        self._node_name = node_name
        self._seen: tuple[tuple[str, int], ...] | None = None
        self._pods: dict[tuple[str, str], Pod] = {}
        self._told: frozenset[str] = frozenset()

    def __call__(self) -> dict[tuple[str, str], Pod]:
        """The pods of the files' current versions; the last known ones while the directory cannot be read."""
        try:
            seen = tuple((entry.name, _modification_time(entry)) for entry in os.scandir(self._directory))
            if seen != self._seen:
                pods, errors = read_directory(self._directory, self._node_name)
                self._replace_pods(pods, errors)
                self._seen = None if any(map(_is_transient, errors)) else seen
        except OSError as error:
            self._log_new_problems([f"static pods cannot be read: {error}"])
        return self._pods

    def _replace_pods(self, pods: list[Pod], errors: list[InvalidInput]) -> None:
        before = self._pods if any(map(_is_transient, errors)) else {}
        self._pods = before | {(pod.metadata.namespace, pod.metadata.name): pod for pod in pods}
        self._log_new_problems(list(map(str, errors)))

    def _log_new_problems(self, problems: list[str]) -> None:
        for problem in problems:
            if problem not in self._told:
                log.warning("%s", problem)
        self._told = frozenset(problems)


def _modification_time(entry: os.DirEntry[str]) -> int:
    """The modification time in nanoseconds; 0 if the target does not exist."""
    try:
        return entry.stat().st_mtime_ns
    except OSError:
        return 0


def _is_transient(error: InvalidInput) -> bool:
    return isinstance(error.__cause__, OSError)


def read_manifest(data: bytes, source: str, node_name: str) -> list[Pod]:
    """The pods in one manifest, bound to the node, with uids from its content. InvalidInput lists all errors."""
    pods = []
    documents = decoding.parse_documents(data, source)
    if not documents:
        raise InvalidInput(source, ["document: a manifest must hold a Pod"])
    for document in documents:
        _check_kind(document, source)
        pod = decoding.convert(document, Pod, source)
        if violations := [*_pod_violations(pod), *_hook_violations(document)]:
            raise InvalidInput(source, violations)
        uid = hashlib.sha256(data + pod.key.encode() + node_name.encode()).hexdigest()[:32]
        pods.append(
            structs.replace(
                pod,
                metadata=structs.replace(pod.metadata, uid=pod.metadata.uid or uid),
                spec=structs.replace(pod.spec, node_name=node_name),
            )
        )
    return pods


def _check_kind(document: object, source: str) -> None:
    if not isinstance(document, dict):
        raise InvalidInput(source, [f"document: {decoding.quote_value(document)}: a manifest must be a Pod"])
    for field, wanted in (("apiVersion", "v1"), ("kind", "Pod")):
        if document.get(field) != wanted:
            raise InvalidInput(source, [f"{field}: {decoding.quote_value(document.get(field))}: must be {wanted}"])


def _pod_violations(pod: Pod) -> list[str]:
    violations = _metadata_violations(pod.metadata)
    if not pod.spec.containers:
        violations.append("spec.containers: a pod must have at least one")
    names: set[str] = set()
    for field, containers in (("initContainers", pod.spec.init_containers or ()), ("containers", pod.spec.containers)):
        for index, container in enumerate(containers):
            at = f"spec.{field}[{index}]"
            violations += _container_violations(container, at)
            if container.name in names:
                violations.append(f'{at}.name: "{container.name}": must be unique in the pod')
            names.add(container.name)
    return violations


def _metadata_violations(metadata: ObjectMetadata) -> list[str]:
    violations = []
    if len(metadata.name) > 253 or not _SUBDOMAIN.fullmatch(metadata.name):
        violations.append(
            f'metadata.name: "{metadata.name}": must be a DNS subdomain: lower case letters, digits, "-" and "."'
        )
    if not _LABEL.fullmatch(metadata.namespace):
        violations.append(
            f'metadata.namespace: "{metadata.namespace}": must be a DNS label: lower case letters, digits and "-"'
        )
    return violations


def _container_violations(container: Container, at: str) -> list[str]:
    violations = []
    if not _LABEL.fullmatch(container.name):
        violations.append(
            f'{at}.name: "{container.name}": must be a DNS label: lower case letters, digits and "-", 63 at most'
        )
    if container.restart_policy not in (None, "Always", "Never", "OnFailure"):
        violations.append(f'{at}.restartPolicy: "{container.restart_policy}": must be Always, Never or OnFailure')
    hook = container.pre_stop
    if hook and hook.exec and not hook.exec.command:
        violations.append(f"{at}.lifecycle.preStop.exec.command: required")
    if hook and hook.http_get and hook.http_get.scheme not in ("", "HTTP", "HTTPS"):
        violations.append(f'{at}.lifecycle.preStop.httpGet.scheme: "{hook.http_get.scheme}": must be HTTP or HTTPS')
    if hook and hook.http_get and isinstance(hook.http_get.port, int) and not 0 < hook.http_get.port < 65536:
        violations.append(f"{at}.lifecycle.preStop.httpGet.port: {hook.http_get.port}: must be between 1 and 65535")
    return violations


def _hook_violations(document: dict[str, object]) -> list[str]:
    """Violations of v1's rule that a preStop handler has exactly one of the known kinds."""
    violations = []
    spec = document.get("spec")
    for field in ("initContainers", "containers"):
        containers = spec.get(field) if isinstance(spec, dict) else None
        for index, container in enumerate(containers or ()):
            lifecycle = container.get("lifecycle") or {}
            hook = lifecycle.get("preStop")
            if hook is None:
                continue
            kinds = [kind for kind in _HOOKS if hook.get(kind) is not None]
            at = f"spec.{field}[{index}].lifecycle.preStop"
            if not kinds:
                violations.append(f"{at}: {decoding.quote_value(hook)}: must specify one of {', '.join(_HOOKS)}")
            elif len(kinds) > 1:
                violations.append(f"{at}: {' and '.join(kinds)}: may not specify more than one handler")
    return violations
