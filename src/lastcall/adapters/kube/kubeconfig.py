"""Finds the API server and our credentials: kubeconfig files by kubectl's rules, or the pod that we run in."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from lastcall.adapters.host.bounded_reads import CONFIG_BYTES, read_file
from lastcall.adapters.kube.credentials import Credential, CredentialSource, FileCredentials, read_text
from lastcall.adapters.kube.exec_plugin import VERSIONS, ExecConfig, ExecPlugin
from lastcall.adapters.kube.https_transport import ServerEndpoint
from lastcall.errors import InvalidInput
from lastcall.model import decoding
from lastcall.ports.node import Clock

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_CLUSTER_CONFIG = "client.authentication.k8s.io/exec"


@dataclass(frozen=True)
class ClusterAccess:
    """Everything that a client needs; ``namespace`` is the context's, or ``default``."""

    endpoint: ServerEndpoint
    credentials: CredentialSource
    namespace: str = "default"


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    extensions: list[dict[str, Any]] = []


class _EnvVar(msgspec.Struct):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel"):
    command: str
    api_version: str
    args: list[str] = []
    env: list[_EnvVar] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class _User(msgspec.Struct, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    as_: str = msgspec.field(default="", name="as")
    as_uid: str = ""
    as_groups: list[str] = []
    username: str = ""
    password: str = ""
    auth_provider: dict[str, Any] | None = None
    exec: _Exec | None = None


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct):
    name: str
    user: _User


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _Config(msgspec.Struct, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


@dataclass
class _MergedConfig:
    """Several files merged: of each name the first entry counts, with the directory for its relative paths."""

    sources: list[str] = field(default_factory=list)
    current: str = ""
    clusters: dict[str, tuple[_Cluster, Path]] = field(default_factory=dict)
    users: dict[str, tuple[_User, Path]] = field(default_factory=dict)
    contexts: dict[str, _Context] = field(default_factory=dict)

    def add_file(self, path: Path, config: _Config) -> None:
        self.sources.append(str(path))
        self.current = self.current or config.current_context
        for cluster in config.clusters:
            self.clusters.setdefault(cluster.name, (cluster.cluster, path.parent))
        for user in config.users:
            self.users.setdefault(user.name, (user.user, path.parent))
        for context in config.contexts:
            self.contexts.setdefault(context.name, context.context)


def find_access(clock: Clock, environ: Mapping[str, str], *, kubeconfig: str = "", context: str = "") -> ClusterAccess:
    """Searches in kubectl's order: the given file, $KUBECONFIG (several by ``:``), ~/.kube/config, our own pod.

    Raises InvalidInput if there is none, or if it has an error.
    """
    listed = [Path(one) for one in environ.get("KUBECONFIG", "").split(":") if one]
    home = Path(environ.get("HOME", "/nonexistent")) / ".kube" / "config"
    paths = [Path(kubeconfig)] if kubeconfig else [one for one in listed or [home] if one.exists()]
    if paths:
        return load_kubeconfig(paths, clock, context=context)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster_access(clock, environ)
    looked = kubeconfig or environ.get("KUBECONFIG") or str(home)
    raise InvalidInput("kubeconfig", [f"there is no {looked}, and this is no pod: name a file by --kubeconfig"])


def in_cluster_access(clock: Clock, environ: Mapping[str, str], *, directory: Path = SERVICE_ACCOUNT) -> ClusterAccess:
    """Access from the pod's service account; the token is read again as it is renewed. Unavailable without files."""
    endpoint = ServerEndpoint(
        environ["KUBERNETES_SERVICE_HOST"],
        int(environ.get("KUBERNETES_SERVICE_PORT", "443")),
        authority=read_text(directory / "ca.crt"),
    )
    namespace = directory / "namespace"
    credentials = FileCredentials(Credential(), clock, token_file=directory / "token")
    return ClusterAccess(endpoint, credentials, read_text(namespace).strip() if namespace.exists() else "default")


def load_kubeconfig(paths: Sequence[Path], clock: Clock, *, context: str = "") -> ClusterAccess:
    """The named context (or the current one) of these files. InvalidInput names file, field and rule."""
    merged = _MergedConfig()
    for path in paths:
        merged.add_file(path, _read_config(path))
    source = ":".join(merged.sources)
    name = context or merged.current
    if not name:
        raise InvalidInput(source, ["current-context: is empty, and no context is named"])
    if name not in merged.contexts:
        raise InvalidInput(
            source, [f'contexts: there is no "{name}" (there is: {", ".join(merged.contexts) or "none"})']
        )
    chosen = merged.contexts[name]
    for plural, wanted, known in (("clusters", chosen.cluster, merged.clusters), ("users", chosen.user, merged.users)):
        if wanted and wanted not in known:
            raise InvalidInput(source, [f'{plural}: there is no "{wanted}", which context "{name}" names'])
    if not chosen.cluster:
        raise InvalidInput(source, [f'contexts: "{name}" names no cluster'])
    cluster, cluster_folder = merged.clusters[chosen.cluster]
    user, user_folder = merged.users.get(chosen.user, (_User(), Path()))
    endpoint = _cluster_endpoint(cluster, cluster_folder, f"{source}: cluster {chosen.cluster}")
    credentials = _user_credentials(user, user_folder, f"{source}: user {chosen.user}", clock, cluster, endpoint)
    return ClusterAccess(endpoint, credentials, chosen.namespace or "default")


def _read_config(path: Path) -> _Config:
    try:
        data = read_file(path, CONFIG_BYTES)
    except OSError as error:
        raise InvalidInput(str(path), [f"cannot be read: {error.strerror}"]) from error
    documents = decoding.parse_documents(data, str(path))
    return decoding.convert(documents[0], _Config, str(path)) if documents else _Config()


def _cluster_endpoint(cluster: _Cluster, folder: Path, source: str) -> ServerEndpoint:
    if not cluster.server:
        raise InvalidInput(source, ["server: must be set"])
    if cluster.proxy_url:
        raise InvalidInput(source, [f"proxy-url: {cluster.proxy_url}: proxies are not supported"])
    authority = _decode_pem(cluster.certificate_authority_data, "certificate-authority-data", source)
    if not authority and cluster.certificate_authority:
        authority = _resolve_file(folder / cluster.certificate_authority, "certificate-authority", source)
    if authority and cluster.insecure_skip_tls_verify:
        raise InvalidInput(source, ["insecure-skip-tls-verify: cannot be true beside a certificate authority"])
    return ServerEndpoint.from_url(
        cluster.server,
        authority=authority,
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )


def _user_credentials(
    user: _User, folder: Path, source: str, clock: Clock, cluster: _Cluster, endpoint: ServerEndpoint
) -> CredentialSource:
    if user.auth_provider is not None:
        raise InvalidInput(source, ["auth-provider: was removed from Kubernetes 1.26; use exec"])
    fixed = Credential(headers=_user_headers(user))
    if user.exec is not None:
        return ExecPlugin(_exec_config(user.exec, folder, source, cluster, endpoint), clock, fixed)
    certificate = _decode_pem(user.client_certificate_data, "client-certificate-data", source)
    key = _decode_pem(user.client_key_data, "client-key-data", source)
    if bool(certificate or user.client_certificate) != bool(key or user.client_key):
        raise InvalidInput(source, ["client-certificate and client-key: both or neither must be set"])
    return FileCredentials(
        replace(fixed, token=user.token, certificate=certificate, key=key),
        clock,
        token_file=folder / user.token_file if user.token_file else None,
        certificate_file=None if certificate or not user.client_certificate else folder / user.client_certificate,
        key_file=None if key or not user.client_key else folder / user.client_key,
    )


def _user_headers(user: _User) -> Sequence[tuple[str, str]]:
    """Headers for basic authentication and impersonation."""
    headers = []
    if user.username:
        pair = base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
        headers.append(("authorization", f"Basic {pair}"))
    if user.as_:
        headers.append(("impersonate-user", user.as_))
    if user.as_uid:
        headers.append(("impersonate-uid", user.as_uid))
    return [*headers, *(("impersonate-group", group) for group in user.as_groups)]


def _exec_config(plugin: _Exec, folder: Path, source: str, cluster: _Cluster, endpoint: ServerEndpoint) -> ExecConfig:
    if plugin.api_version not in VERSIONS:
        raise InvalidInput(source, [f"exec.apiVersion: {plugin.api_version}: must be one of {', '.join(VERSIONS)}"])
    if plugin.interactive_mode == "Always":
        raise InvalidInput(source, ["exec.interactiveMode: Always: the plugin cannot prompt for input here"])
    command = str(folder / plugin.command) if "/" in plugin.command else plugin.command
    return ExecConfig(
        plugin.api_version,
        command,
        plugin.args,
        {one.name: one.value for one in plugin.env},
        plugin.install_hint,
        _cluster_info(cluster, endpoint) if plugin.provide_cluster_info else None,
    )


def _cluster_info(cluster: _Cluster, endpoint: ServerEndpoint) -> Mapping[str, Any]:
    """The cluster information for a plugin (client.authentication.k8s.io Cluster)."""
    info: dict[str, Any] = {"server": cluster.server}
    if cluster.tls_server_name:
        info["tls-server-name"] = cluster.tls_server_name
    if cluster.insecure_skip_tls_verify:
        info["insecure-skip-tls-verify"] = True
    if endpoint.authority:
        info["certificate-authority-data"] = base64.b64encode(endpoint.authority.encode()).decode()
    config = next((one.get("extension") for one in cluster.extensions if one.get("name") == _CLUSTER_CONFIG), None)
    return {**info, "config": config}


def _decode_pem(data: str, name: str, source: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise InvalidInput(source, [f"{name}: not base64 of PEM text: {error}"]) from error


def _resolve_file(path: Path, name: str, source: str) -> str:
    try:
        return read_file(path, CONFIG_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(source, [f"{name}: {path} cannot be read: {error}"]) from error
