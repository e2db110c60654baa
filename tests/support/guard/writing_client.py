"""A client that counts its acknowledged writes, and looks for the new server when its own is gone."""

import threading
import time


class WritingClient:
    """Writes one value after the other, and remembers which were acknowledged, while the context lasts.

    What is written to a frozen replica may still wait in the system's buffers, some megabytes, and is not lost: values of
    many bytes exceed them.

    ``connect`` returns a connection to the server that takes writes, or None; ``write(connection, number)`` returns whether
    the write was acknowledged. Both may raise OSError.
    """

    def __init__(self, connect, write, *, pause=0.005):
        self._connect = connect
        self._write = write
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.acknowledged = []
        self.times = []
        """When each was."""

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(30)

    def _run(self):
        number, connection = 0, None
        while not self._stop.is_set():
            try:
                connection = connection or self._connect()
                if connection is None:
                    time.sleep(0.05)
                    continue
                number += 1
                if self._write(connection, number):
                    self.acknowledged.append(number)
                    self.times.append(time.monotonic())
                time.sleep(self._pause)
            except OSError:
                if connection:
                    connection.close()
                connection = None
                time.sleep(0.05)
        if connection:
            connection.close()
