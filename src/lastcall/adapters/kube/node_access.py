"""Finds the identity by which an agent reads its node's pods: a given kubeconfig, the kubelet's, or its own pod's."""

import logging
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from lastcall.adapters.host.kubelet_process import find_kubelet_process, flag_value, path_below
from lastcall.adapters.kube.exec_plugin import ExecPlugin
from lastcall.adapters.kube.kubeconfig import ClusterAccess, in_cluster_access, load_kubeconfig
from lastcall.errors import InvalidInput
from lastcall.ports.node import Clock

KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
"""The kubelet's kubeconfig where kubeadm has installed the node."""


log = logging.getLogger(__name__)


class NoIdentity(InvalidInput):
    """There is no file and no token by which the API server could be asked."""


def find_node_access(
    clock: Clock, environ: Mapping[str, str], *, kubeconfig: str = "", root: Path = Path("/")
) -> ClusterAccess:
    """The first of: the file of the running kubelet's --kubeconfig; KUBELET_CONF; the given file; our own pod's token.

    The API server restricts the kubelet's identity to its own node, so it comes first. A file whose credential plugin
    is not installed is passed over if there is another identity: a container does not have the host's programs.

    Blocks for small files, those of the kubelet below ``root``. Raises NoIdentity if there is none, InvalidInput if it has
    an error, and Unavailable if our pod's token cannot be read.
    """
    looked = list(_kubelet_files(root))
    other = bool(kubeconfig or environ.get("KUBERNETES_SERVICE_HOST"))
    for path in looked:
        if _is_there(path):
            access = load_kubeconfig([path], clock)
            if not other or not (plugin := _missing_plugin(access)):
                return access
            log.warning("%s is not used: its credential plugin %s is not here", path, plugin)
    if kubeconfig:
        return load_kubeconfig([Path(kubeconfig)], clock)
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster_access(clock, environ)
    files = " or ".join(map(str, looked))
    raise NoIdentity("the node's identity", [f"there is no {files}, and this is no pod: name a file by --kubeconfig"])


def _missing_plugin(access: ClusterAccess) -> str:
    """The program that gives the credentials, if it cannot be found; "" if it can, or if there is none."""
    credentials = access.credentials
    command = credentials.command if isinstance(credentials, ExecPlugin) else ""
    return command if command and shutil.which(command) is None else ""


def _kubelet_files(root: Path) -> Iterator[Path]:
    try:
        process = find_kubelet_process(root)
    except OSError:  # of another user: then its files are closed to us too
        process = None
    flag = flag_value(process.arguments, "kubeconfig") if process else ""
    for path in dict.fromkeys([flag, KUBELET_CONF]):
        if path:
            yield path_below(root, path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a directory that is closed to us
        return False
