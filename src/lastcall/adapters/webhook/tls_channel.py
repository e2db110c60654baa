"""The server's side of one TLS connection, in memory: what is received in, what is to be sent out (no I/O).

asyncio's own TLS costs more CPU than the rest of an answer, and keeps 256 KiB for each connection.
"""

import contextlib
import ssl
from typing import Any

_PIECE = 16 * 1024
"""As much as a record holds, so that one read leaves nothing of it."""


class TlsChannel:
    """``peer`` is the common name of the client's verified certificate as soon as the handshake is over, "" without one."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._received = ssl.MemoryBIO()
        self._sent = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._sent, server_side=True)
        self.is_open = False
        """Whether the handshake is over."""
        self.is_ended = False
        """Whether the client has said that it sends no more."""
        self.peer = ""

    def decrypt(self, data: bytes | memoryview) -> bytes:
        """What the client says with this data and what came before; b"" if a part is missing, and in the handshake.

        Raises SSLError for what is no TLS, and for a client that is refused. ``take_output`` has to be sent in any case.
        """
        self._received.write(data)
        pieces: list[bytes] = []
        try:
            if not self.is_open:
                self._shake_hands()
            while self._received.pending and not self.is_ended:
                pieces.append(self._tls.read(_PIECE))
                self.is_ended = not pieces[-1]
        except ssl.SSLWantReadError:
            pass
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def encrypt(self, data: bytes) -> bytes:
        """What has to be sent to say this."""
        self._tls.write(data)  # as a whole: SSL_write(3) splits nothing without SSL_MODE_ENABLE_PARTIAL_WRITE
        return self._sent.read()

    def end(self) -> bytes:
        """What has to be sent to say that nothing follows."""
        if self.is_open:
            with contextlib.suppress(ssl.SSLError):  # the client has not said the same yet, and need not
                self._tls.unwrap()
        return self._sent.read()

    def take_output(self) -> bytes:
        """What the handshake has to send."""
        return self._sent.read() if self._sent.pending else b""

    def _shake_hands(self) -> None:
        self._tls.do_handshake()
        self.is_open = True
        certificate: dict[str, Any] = self._tls.getpeercert() or {}
        names = (value for part in certificate.get("subject", ()) for name, value in part if name == "commonName")
        self.peer = next(names, "")
