"""The files that the control plane keeps in its directory: made once, read at each start, checked before they are used.

A file that cannot be what it should be is refused: an empty token or key would let everybody in.
"""

import re
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lastcall.errors import InvalidInput
from lastcall_lab.apiserver.authentication import certificates
from lastcall_lab.apiserver.storage import private_files

_SHORTEST = 16
_TOKEN = re.compile(rb"[A-Za-z0-9._~+/=-]{%d,}" % _SHORTEST)
_ANEW = "remove the file, and a new one is made"
_PORTS = range(1, 65536)
_LEAST_DAYS = 90
"""So long a certificate authority must still be valid when the lab starts."""


def read_secret(path: Path) -> str:
    """A token or password; InvalidInput if the file has another content."""
    content = _read_or_make(path, lambda: secrets.token_urlsafe(24).encode())
    if not _TOKEN.fullmatch(content):
        what = "is empty" if not content.strip() else f"is not {_SHORTEST} or more letters, digits and -._~+/="
        raise InvalidInput(str(path), [f"{what}: {_ANEW}"])
    return content.decode()


def read_signing_key(path: Path) -> bytes:
    """A key that signs tokens; InvalidInput if it is too short to be one."""
    content = _read_or_make(path, lambda: secrets.token_bytes(32))
    if len(content) < _SHORTEST:
        what = "is empty" if not content else f"has {len(content)} bytes, which are fewer than {_SHORTEST}"
        raise InvalidInput(str(path), [f"{what}: {_ANEW}"])
    return content


def read_port(path: Path) -> int:
    """The port of the last start; 0 if there was none. InvalidInput if the file has another content."""
    if not path.exists():
        return 0
    said = private_files.read_file(path).strip()
    if not said.isdigit() or int(said) not in _PORTS:
        raise InvalidInput(str(path), [f"is not a port number from 1 to 65535: {_ANEW}"])
    return int(said)


def read_authority(certificate: Path, private: Path, *, now: float) -> certificates.CertificatePair:
    """The certificate authority; a new one if one of its files is not there, or it ends soon. InvalidInput if they are not one.

    ``now`` is in seconds since 1970. The kubeconfig, which has the certificate, is written anew at each start.
    """
    if not (certificate.exists() and private.exists()):
        return _new_authority(certificate, private, now)
    pair = certificates.CertificatePair(private_files.read_file(certificate), private_files.read_file(private))
    anew = f"remove {certificate.name} and {private.name}, and new ones are made"
    try:
        known = x509.load_pem_x509_certificate(pair.certificate)
    except ValueError:
        raise InvalidInput(str(certificate), [f"is not a certificate in PEM: {anew}"]) from None
    try:
        found = serialization.load_pem_private_key(pair.key, None)
    except (ValueError, TypeError):
        raise InvalidInput(str(private), [f"is not a private key in PEM without a password: {anew}"]) from None
    if not isinstance(found, ec.EllipticCurvePrivateKey) or found.public_key() != known.public_key():
        raise InvalidInput(str(private), [f"is not the key of {certificate.name}: {anew}"])
    if known.not_valid_after_utc - datetime.fromtimestamp(now, UTC) < timedelta(days=_LEAST_DAYS):
        return _new_authority(certificate, private, now)
    return pair


def _new_authority(certificate: Path, private: Path, now: float) -> certificates.CertificatePair:
    made = certificates.new_authority("lastcall-lab", now=now)
    certificate.unlink(missing_ok=True)  # who is interrupted between the two files leaves none that fit no key
    private_files.write_file(private, made.key)
    private_files.write_file(certificate, made.certificate)
    return made


def _read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """What is in a file; made once for a directory."""
    if not path.exists():
        private_files.write_file(path, make())
    return private_files.read_file(path)
