"""The control plane's secret files: created once, read at each start, validated before use.

An invalid file is refused: an empty token or key would admit every client.
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
"""Seconds for which a certificate authority must still be valid when the lab starts."""


def read_secret(path: Path) -> str:
    """Reads a token or password; InvalidInput if its format is wrong."""
    content = _read_or_make(path, lambda: secrets.token_urlsafe(24).encode())
    if not _TOKEN.fullmatch(content):
        what = "is empty" if not content.strip() else f"is not {_SHORTEST} or more letters, digits and -._~+/="
        raise InvalidInput(str(path), [f"{what}: {_ANEW}"])
    return content.decode()


def read_signing_key(path: Path) -> bytes:
    """Reads a key that signs tokens; InvalidInput if it is too short."""
    content = _read_or_make(path, lambda: secrets.token_bytes(32))
    if len(content) < _SHORTEST:
        what = "is empty" if not content else f"has {len(content)} bytes, which are fewer than {_SHORTEST}"
        raise InvalidInput(str(path), [f"{what}: {_ANEW}"])
    return content


def read_port(path: Path) -> int:
    """The port of the last start; 0 if there was none. InvalidInput if the file is malformed."""
    if not path.exists():
        return 0
    said = private_files.read_file(path).strip()
    if not said.isdigit() or int(said) not in _PORTS:
        raise InvalidInput(str(path), [f"is not a port number from 1 to 65535: {_ANEW}"])
    return int(said)


def read_authority(certificate: Path, private: Path, *, now: float) -> certificates.CertificatePair:
    """Reads the certificate authority; makes a new one if a file is missing or it expires soon.

    Raises InvalidInput if the files are malformed. ``now`` is in seconds since 1970. The kubeconfig, which contains the
    certificate, is rewritten at each start.
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
    certificate.unlink(missing_ok=True)  # an interruption between the two files leaves none without its key
    private_files.write_file(private, made.key)
    private_files.write_file(certificate, made.certificate)
    return made


def _read_or_make(path: Path, make: Callable[[], bytes]) -> bytes:
    """The content of a file, which is made once for each directory."""
    if not path.exists():
        private_files.write_file(path, make())
    return private_files.read_file(path)
