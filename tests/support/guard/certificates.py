"""Certificates of servers and clients of a test, as files and as the Secrets that a GuardPolicy names."""

import re
import ssl
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall_lab.apiserver.authentication import certificates

HOST = "app.shop.svc"
"""The name in the servers' certificates, which have no address."""


EXPIRED = "its certificate is not accepted: certificate has expired"


def _say(words):
    return re.compile(f"its certificate is not accepted: .*{words}")


FAULTS = {
    "another authority": (
        {"caSecret": {"name": "other"}},
        _say("(unable to get local issuer|self-signed) certificate"),
    ),
    "another name": ({"serverName": "other"}, _say("Hostname mismatch, certificate is not valid for 'other'")),
    "no name, and so the address": ({"serverName": ""}, _say("IP address mismatch, certificate is not valid for")),
}
"""Settings in place of the right ones, and what is said then."""


class TlsFiles:
    """An authority, a server's certificate, which clients may show too, and one of a client.

    ``expired``: the server's is not valid any more.
    """

    def __init__(self, directory, *, expired=False):
        self.ca, self.certificate, self.key = (directory / name for name in ("ca.crt", "tls.crt", "tls.key"))
        directory.mkdir(exist_ok=True)
        self._authority = certificates.new_authority("test", now=time.time())
        self.ca.write_bytes(self._authority.certificate)
        self.write(expired=expired)
        self._client = certificates.client_certificate("guard", (), self._authority, now=time.time())

    def write(self, *, expired=False):
        """Another certificate of the server."""
        certificate, key = _sign(self._authority, -1 if expired else 1)
        self.certificate.write_bytes(certificate)
        self.key.write_bytes(key)
        self.key.chmod(0o644)  # servers that run as another user read it

    def make_context(self):
        """Of a client of the test's own, which takes any server of the authority."""
        context = ssl.create_default_context(cafile=self.ca)
        context.check_hostname = False
        context.load_cert_chain(self.certificate, self.key)
        return context

    @property
    def secrets(self):
        """``ca``, ``client``, and ``other``, an authority that has signed nothing."""
        other = certificates.new_authority("other", now=time.time()).certificate
        client = {"tls.crt": self._client.certificate.decode(), "tls.key": self._client.key.decode()}
        return {"ca": self._authority.certificate.decode(), "other": other.decode(), "client": client}


SETTINGS = {"caSecret": {"name": "ca"}, "serverName": HOST, "clientCertificateSecret": {"name": "client"}}
"""The right ones, but for what switches TLS on."""


def _sign(authority, days):
    """For both purposes: members speak to each other with it."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    signer = serialization.load_pem_private_key(authority.key, None)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "app")]))
    builder = (
        builder.issuer_name(issuer.subject).public_key(key.public_key()).serial_number(x509.random_serial_number())
    )
    builder = builder.not_valid_before(now - timedelta(days=2)).not_valid_after(now + timedelta(days=days))
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(both), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
    signed = builder.sign(signer, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return signed.public_bytes(serialization.Encoding.PEM), private


async def read_refusals(provider, whole):
    """What each question is answered: an error, and none that says that nobody is there, since its pod might go then."""
    said = []
    for question in ("check_health", "prepare", "check_progress", "cancel"):
        try:
            await getattr(provider, question)(whole)
        except (Unavailable, TimedOut) as error:
            raise AssertionError(f"{question}: {error!r}") from error
        except LastcallError as error:
            said.append(str(error))
        else:
            raise AssertionError(f"{question} is no error")
    return said
