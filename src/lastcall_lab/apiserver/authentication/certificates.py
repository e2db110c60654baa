"""The lab's certificate authority, and the certificates of its API server and clients."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=365)
_EARLIER = timedelta(hours=1)
"""A certificate is valid from a little before its creation, because clocks differ."""


class CertificatePair(NamedTuple):
    """A certificate with its private key, both PEM."""

    certificate: bytes
    key: bytes


def new_authority(name: str, *, now: float) -> CertificatePair:
    """A new certificate authority; ``now`` in seconds since 1970."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _builder(subject, subject, key.public_key(), now)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_usage(sign_certificates=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return _pair(builder.sign(key, hashes.SHA256()), key)


def server_certificate(name: str, hosts: Sequence[str], issuer: CertificatePair, *, now: float) -> CertificatePair:
    """A certificate for a server with the names or addresses ``hosts``, signed by ``issuer``.

    ``name`` must differ from the authority's: OpenSSL considers a certificate with equal subject and issuer
    self-signed.
    """
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    names = x509.SubjectAlternativeName([_general(host) for host in hosts])
    return _sign(subject, ExtendedKeyUsageOID.SERVER_AUTH, names, issuer, now)


def client_certificate(name: str, groups: Sequence[str], issuer: CertificatePair, *, now: float) -> CertificatePair:
    """A client certificate. Kubernetes uses its common name as the user and its organizations as the groups."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return _sign(subject, ExtendedKeyUsageOID.CLIENT_AUTH, None, issuer, now)


def _sign(
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    names: x509.SubjectAlternativeName | None,
    issuer: CertificatePair,
    now: float,
) -> CertificatePair:
    ca = x509.load_pem_x509_certificate(issuer.certificate)
    ca_key = serialization.load_pem_private_key(issuer.key, None)
    if not isinstance(ca_key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not one that this module has made")
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, ca.subject, key.public_key(), now)
    if names:
        builder = builder.add_extension(names, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    builder = builder.add_extension(_usage(sign_certificates=False), critical=True)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    return _pair(builder.sign(ca_key, hashes.SHA256()), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: float
) -> x509.CertificateBuilder:
    begin = datetime.fromtimestamp(now, UTC)
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    return builder.not_valid_before(begin - _EARLIER).not_valid_after(begin + _VALID)


def _usage(*, sign_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=sign_certificates,
        crl_sign=sign_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> CertificatePair:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return CertificatePair(certificate.public_bytes(serialization.Encoding.PEM), private)
