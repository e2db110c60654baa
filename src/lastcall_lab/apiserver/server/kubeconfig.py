"""The kubeconfig file of the lab."""

import base64
import os
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from lastcall.errors import InvalidInput, RefusedForSafety

CONTEXT = "lastcall-lab"
"""The cluster name by which a file is recognized as a lab's."""

_ANSWER_SECONDS = 1.0


def write_kubeconfig(path: Path, *, url: str, authority: bytes, token: str, user: str) -> None:
    """Writes it atomically with owner-only access: the token grants full access to the lab.

    InvalidInput if it cannot be written. RefusedForSafety if the file exists and is not a lab's, or is that of another
    running lab: neither is overwritten.
    """
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority).decode(),
                },
            }
        ],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user}}],
        "current-context": CONTEXT,
    }
    try:
        _check_free(path, url)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yaml.safe_dump(content, file, sort_keys=False)
        temporary.replace(path)
    except OSError as error:
        raise InvalidInput("--kubeconfig", [f"{path} cannot be written: {error.strerror}"]) from None


def remove_kubeconfig(path: Path, *, url: str) -> None:
    """Removes the file if it still refers to the lab at ``url``."""
    try:
        if _server(path) == url:
            path.unlink()
    except (OSError, RefusedForSafety):
        pass


def _check_free(path: Path, own: str) -> None:
    try:
        url = _server(path)
    except FileNotFoundError:
        return
    if url in ("", own):
        return
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), _ANSWER_SECONDS).close()
    except OSError:
        return  # left by a killed lab
    raise RefusedForSafety(f"{path} belongs to a lab that runs at {url}: name another file by --kubeconfig")


def _server(path: Path) -> str:
    """The URL of the lab that the file refers to; empty if it has none."""
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
        if content is None:
            return ""
        [cluster] = content["clusters"]
        if cluster["name"] == CONTEXT:
            return str(cluster["cluster"]["server"])
    except (yaml.YAMLError, UnicodeDecodeError, LookupError, TypeError, ValueError):
        pass
    raise RefusedForSafety(
        f"{path} is not a lab's kubeconfig and would be overwritten: name another file by --kubeconfig"
    )
