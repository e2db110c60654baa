"""What an error of the API server means for the eviction or deletion of a pod (pure)."""

import re
from typing import Any

from lastcall.drain.decisions.pod_progress import AnswerKind, PodAnswer
from lastcall.errors import (
    ApiFailure,
    ApiNotPermitted,
    Conflict,
    LastcallError,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from lastcall.model.budgets import NEGATIVE, SEVERAL, UNCONFIRMED
from lastcall.ports.drain import EvictionHeld

_ANOTHER_POD = re.compile(r"UID in (the )?precondition")
"""In the two messages of kube-apiserver about a uid that is not the object's (rest/delete.go, storage/interfaces.go)."""

_WHOSE_ABSENCE = ("pods", "namespaces")
"""In ``details.kind`` of a NotFound that proves that there is no such pod."""

NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause of a Forbidden in a namespace that is being deleted: its pods are deleted anyway."""


def read_answer(error: LastcallError | None, *, has_end: bool = False) -> PodAnswer:
    """The meaning of an error; None is a success. ``has_end``: the pod, or the drain, is given up at some time.

    kubectl fails a pod by an error 500 or a broken connection. Here it is asked for again: the precondition on its
    uid makes a second request harmless. What fails at once is what would fail again. A webhook that denies may change
    its mind; it is asked again if that has an end.
    """
    if error is None:
        return PodAnswer(kind=AnswerKind.ACCEPTED)
    if _is_of_no_such_pod(error):
        return PodAnswer(kind=AnswerKind.GONE)
    if SEVERAL in str(error):
        return PodAnswer(kind=AnswerKind.FAILED, message=str(error))
    if _waits(error) or (has_end and _is_denied(error)):
        after = error.retry_after if isinstance(error, ApiFailure) else None
        held = isinstance(error, EvictionHeld) or _is_denied(error)
        return PodAnswer(kind=AnswerKind.REFUSED, message=_whole_text(error), retry_after=after, is_held=held)
    return PodAnswer(kind=AnswerKind.FAILED, message=str(error))


def _is_of_no_such_pod(error: LastcallError) -> bool:
    """Whether there is no pod of this name, or it is another one.

    A NotFound may be about something else while the pod runs: its budget was deleted during the eviction.
    """
    if isinstance(error, Conflict):
        return _ANOTHER_POD.search(str(error)) is not None
    return isinstance(error, NotFound) and not error.is_by_webhook and error.details.get("kind") in _WHOSE_ABSENCE


def _waits(error: LastcallError) -> bool:
    if isinstance(error, TooManyRequests | Unavailable | Conflict):
        return True
    if isinstance(error, NotFound):
        return not error.is_by_webhook
    if not isinstance(error, ApiNotPermitted):
        return False
    is_behind = any(text in str(error) for text in (NEGATIVE, UNCONFIRMED))
    return is_behind or any(cause.get("reason") == NAMESPACE_TERMINATING for cause in _list_causes(error))


def _is_denied(error: LastcallError) -> bool:
    """Whether a webhook has denied the request."""
    return isinstance(error, ApiFailure) and error.is_by_webhook


def _whole_text(error: LastcallError) -> str:
    """The message, and what the causes add to it: there a budget says how many pods it needs and has."""
    causes = _list_causes(error) if isinstance(error, ApiFailure) else []
    said = [str(cause.get("message") or "") for cause in causes]
    return " ".join([str(error), *(text for text in said if text and text not in str(error))])


def _list_causes(error: ApiFailure) -> list[dict[str, Any]]:
    causes = error.details.get("causes")
    return [one for one in causes if isinstance(one, dict)] if isinstance(causes, list) else []
