"""The pods of a node as the agent keeps them on the disk for a start without the API server (pure).

The pods are found by uid, so an old checkpoint does no harm: its pods do not run any more.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from lastcall.model.base import Facts
from lastcall.model.own_pods import runtime_uid
from lastcall.model.pods import Pod, pod_priority

MOST_BYTES = 8 * 2**20
"""Largest checkpoint in bytes; 500 pods take less than one MiB."""


class _Checkpoint(Facts, frozen=True):
    pods: tuple[Pod, ...]


def encode_checkpoint(pods: Iterable[Pod], most: int = MOST_BYTES) -> tuple[bytes, int]:
    """The checkpoint of at most ``most`` bytes, and how many pods did not fit.

    Pods of high priority come first: for them it matters most that their phase is known.
    """
    encoded = [_encode_pod(pod) for pod in sorted(pods, key=lambda pod: (-pod_priority(pod), pod.key))]
    size, kept = len(b'{"pods":[]}'), 0
    for one in encoded:
        size += len(one) + len(b",")
        if size > most:
            break
        kept += 1
    return b'{"pods":[%b]}' % b",".join(encoded[:kept]), len(encoded) - kept


def decode_checkpoint(data: bytes) -> dict[str, Pod]:
    """The pods by ``runtime_uid``. Raises ValueError if the checkpoint is not whole or not valid."""
    try:
        return {runtime_uid(pod): pod for pod in msgspec.json.decode(data, type=_Checkpoint).pods}
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def _encode_pod(pod: Pod) -> bytes:
    return msgspec.json.encode(_drop_absent(msgspec.to_builtins(pod)))


def _drop_absent(value: Any) -> Any:
    """Leaves out fields that are not set, which are most of them."""
    if isinstance(value, dict):
        return {key: _drop_absent(inner) for key, inner in value.items() if inner not in (None, "")}
    return [_drop_absent(inner) for inner in value] if isinstance(value, list | tuple) else value
