"""TLS contexts from PEM text."""

import os
import ssl

from lastcall.errors import InvalidInput


def client_context(
    authority: str = "", *, insecure: bool = False, certificate: str = "", key: str = ""
) -> ssl.SSLContext:
    """For a client that trusts ``authority`` (default: the system's CAs) and presents ``certificate``.

    Raises InvalidInput if one of them is not PEM, or if the key does not belong to the certificate.
    """
    try:
        context = ssl.create_default_context(cadata=authority or None)
    except ssl.SSLError as error:
        raise InvalidInput("the certificate authority", [f"not PEM certificates: {error}"]) from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        load_certificate(context, certificate, key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Loads the certificate chain that the context presents. Raises InvalidInput as above.

    OpenSSL reads only files; this one has no name and is in memory, so that no key is left on a disk.
    """
    descriptor = os.memfd_create("tls", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, f"{certificate}\n{key}".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    except ssl.SSLError as error:
        raise InvalidInput("the client certificate", [f"not a PEM certificate with its key: {error}"]) from error
    finally:
        os.close(descriptor)


def verify_clients(context: ssl.SSLContext, authorities_file: str, source: str) -> None:
    """Has a server's context verify a client's certificate, if the client presents one.

    InvalidInput names ``source`` if the file cannot be read or holds no certificates.
    """
    try:
        context.load_verify_locations(cafile=authorities_file)
    except ssl.SSLError as error:
        raise InvalidInput(source, [f"{authorities_file} holds no PEM certificates: {error}"]) from error
    except OSError as error:
        raise InvalidInput(source, [f"{authorities_file} cannot be read: {error.strerror or error}"]) from error
    context.verify_mode = ssl.CERT_OPTIONAL
