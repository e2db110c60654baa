"""``NamespaceAccess`` to members that answer HTTP requests as they are told, and remember them."""

import json

from lastcall.errors import Unavailable


class ScriptedMembers:
    """``answers`` by the pod's name and by ``METHOD /path``: a status and a value. A pod without any is silent."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []

    async def read_secret(self, name, key):
        return "s3cret"

    async def connect(self, pod, port, **tls):
        if not self.answers.get(pod.metadata.name):
            raise Unavailable(f"{pod.key}: connection refused")
        return _Connection(self, pod.metadata.name)


class _Connection:
    def __init__(self, members, name):
        self._members, self._name = members, name
        self._request, self._is_answered = b"", False

    async def write(self, data):
        self._request += data

    async def read(self, most):
        if self._is_answered:
            return b""
        self._is_answered = True
        title = " ".join(self._request.decode().split()[:2])
        self._members.asked.append((self._name, title))
        status, value = self._members.answers[self._name][title]
        text = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        return b"HTTP/1.0 %d X\r\n\r\n%b" % (status, text)

    def close(self):
        pass
