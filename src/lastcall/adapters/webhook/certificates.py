"""Makes the guard's own certificate authority and serving certificates (``cryptography``; no I/O)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lastcall.model.base import Facts

AUTHORITY_DAYS = 3650
SERVING_DAYS = 90

_BACKDATED = timedelta(hours=1)
"""Clocks of other machines may be behind."""


class KeyPair(Facts, frozen=True):
    """A certificate and its private key, in PEM."""

    certificate: str
    key: str


def make_authority(now: datetime) -> KeyPair:
    """A certificate authority of its own, for ten years."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"lastcall-guard-ca@{int(now.timestamp())}")])
    builder = _builder(name, name, key, now, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    builder = builder.add_extension(usage, critical=True)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def make_serving_certificate(authority: KeyPair, names: Sequence[str], now: datetime) -> KeyPair:
    """A certificate for these DNS names and addresses, for 90 days, signed by the authority."""
    signer = x509.load_pem_x509_certificate(authority.certificate.encode())
    signer_key = serialization.load_pem_private_key(authority.key.encode(), password=None)
    assert isinstance(signer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    builder = _builder(subject, signer.subject, key, now, SERVING_DAYS)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(one) for one in names]), critical=False)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    return _pair(builder.sign(signer_key, hashes.SHA256()), key)


def renewal_time(certificate: str) -> datetime:
    """When two thirds of a certificate's life are over."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    begin, end = found.not_valid_before_utc, found.not_valid_after_utc
    return begin + (end - begin) * 2 / 3


def names_of(certificate: str) -> frozenset[str]:
    """The DNS names and addresses of a certificate."""
    found = x509.load_pem_x509_certificate(certificate.encode())
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return frozenset(str(one.value) for one in extension)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=days))
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    pem = serialization.Encoding.PEM
    written = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(certificate=certificate.public_bytes(pem).decode(), key=written.decode())
