"""Calls by TLS to servers that may reset a connection at any time."""

import contextlib
import traceback
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def no_socket_left() -> Iterator[None]:
    """Closes the socket of a call that fails with OSError.

    ``ssl.SSLSocket`` leaves it open if the server resets the connection before the handshake; its ResourceWarning then
    fails whatever test runs when it is collected.
    """
    try:
        yield
    except OSError as error:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            one: BaseException | None = error
            while one is not None:
                traceback.clear_frames(one.__traceback__)
                one = one.__context__
        raise
