"""Continue tokens: the revision and the last key of a paged list (``apiserver/pkg/storage/continue.go``)."""

import base64
import binascii
import json
from typing import Any, NamedTuple

from lastcall_lab.apiserver.encoding import go_json
from lastcall_lab.apiserver.storage.store import Place
from lastcall_lab.apiserver.values.api_errors import ApiError, bad_request_error

_VERSION = "meta.k8s.io/v1"


class ContinueToken(NamedTuple):
    """``revision`` is -1 to continue with the newest state after the list's own revision was compacted."""

    revision: int
    after: Place


def encode_token(token: ContinueToken) -> str:
    """The token for clients. The NUL makes the key the smallest one after the last object's."""
    content = {"v": _VERSION, "rv": token.revision, "start": f"{''.join(token.after).lstrip('/')}\0"}
    return base64.urlsafe_b64encode(json.dumps(content, separators=(",", ":")).encode()).decode().rstrip("=")


def decode_token(text: str, *, namespaced: bool) -> ContinueToken:
    """ApiError if the token is invalid."""
    content = _content(text)
    version, revision, start = content.get("v", ""), content.get("rv", 0), content.get("start", "")
    if version != _VERSION:
        raise _invalid(f": server does not recognize this encoded version {version}")
    if not revision:
        raise _invalid(f": incorrect encoded start resourceVersion (version {_VERSION})")
    if not start:
        raise _invalid(f": encoded start key empty (version {_VERSION})")
    key = start.removeprefix("/")
    if "//" in start or key.endswith("/") or any(part in (".", "..") for part in key.split("/")):
        raise _invalid(f": {start}")
    space, slash, rest = key.rstrip("\0").partition("/")
    return ContinueToken(revision, (space + slash, rest) if namespaced else ("/", space))


def _content(text: str) -> dict[str, Any]:
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        allowed = (character.isascii() and (character.isalnum() or character in "-_") for character in text)
        wrong = next((index for index, good in enumerate(allowed) if not good), len(text))
        raise _invalid(f": illegal base64 data at input byte {wrong}") from None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise _invalid(f": {_json_error(data)}") from None
    if not isinstance(content, dict):
        raise _invalid(
            f": json: cannot unmarshal {go_json.json_type_name(content)} into Go value of type storage.continueToken"
        )
    for name, kind, said in (("v", str, "string"), ("rv", int, "int64"), ("start", str, "string")):
        value = content.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, kind)):
            where = f"Go struct field continueToken.{name} of type {said}"
            raise _invalid(f": json: cannot unmarshal {go_json.json_type_name(value)} into {where}")
    return {name: value for name, value in content.items() if value is not None}


def _json_error(data: bytes) -> str:
    """The error in the words of Go's ``encoding/json``."""
    first = data.lstrip(b" \t\r\n")[:1]
    if first >= b"\x80":
        return f"invalid character '\\x{first.hex()}' looking for beginning of value"
    return go_json.syntax_error(data.decode(errors="replace"))


def _invalid(why: str) -> ApiError:
    return bad_request_error(f"invalid continue token: continue key is not valid{why}")
