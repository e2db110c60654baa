"""Asks the Placement Driver (PD) of a TiKV cluster by its HTTP API, at whichever of its pods answers.

A follower passes requests on to the leader itself, and answers 503 while there is none. Who answers with a redirect is
passed over, like who does not answer.
"""

from typing import Any, Final

import msgspec

from lastcall.adapters.guard.application_answers import shorten_message
from lastcall.adapters.guard.http_exchange import HttpAnswer
from lastcall.adapters.guard.http_member import HttpMember
from lastcall.errors import LastcallError, TimedOut, Unavailable
from lastcall.model.budgets import is_ready
from lastcall.model.pods import Pod
from lastcall.model.selectors import LabelSelector
from lastcall.ports.guard import NamespaceAccess

API: Final = "/pd/api/v1"
MOST_ASKED: Final = 3
"""So many pods are asked for one answer at most, one after the other."""

NOT_FOUND: Final = 404


class PlacementDriver:
    """One conversation with PD: its pods are listed once, and whoever has answered is asked first afterwards."""

    def __init__(self, http: HttpMember, access: NamespaceAccess, selector: LabelSelector) -> None:
        self._http = http
        self._access = access
        self._selector = selector
        self._pods: list[Pod] | None = None

    async def read(self, path: str, *, if_missing: Any = None) -> Any:
        """The JSON value at a path below ``/pd/api/v1``; ``if_missing``, if it is given, for 404.

        Unavailable if no pod answers, or PD has no leader. LastcallError if PD refuses.
        """
        title = f"PD: GET {API}{path}"
        answer = await self._ask("GET", path)
        if answer.status == NOT_FOUND and if_missing is not None:
            return if_missing
        _require_success(answer, title)
        try:
            return msgspec.json.decode(bytes(answer.body))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise LastcallError(f"{title}: the answer is no JSON: {error}") from error

    async def add_scheduler(self, name: str, store: int) -> None:
        """Adds a scheduler for a store. Without effect if there is one. Errors as of ``read``."""
        body = msgspec.json.encode({"name": name, "store_id": store})
        _require_success(await self._ask("POST", "/schedulers", body), f"PD: scheduler {name} of store {store}")

    async def remove_scheduler(self, name: str, store: int) -> None:
        """Removes the scheduler of a store. Without effect if there is none. Errors as of ``read``.

        Older versions of PD crash if they do not know the store any more (tikv/pd#3660): ask before whether it does.
        """
        answer = await self._ask("DELETE", f"/schedulers/{name}-{store}")
        if answer.status != NOT_FOUND:
            _require_success(answer, f"PD: removal of scheduler {name} of store {store}")

    async def _ask(self, method: str, path: str, body: bytes = b"") -> HttpAnswer:
        """The first answer that is PD's own word: a success, or a refusal."""
        failures = []
        for pod in await self._list_pods():
            try:
                answer = await self._http.ask(pod, method, f"{API}{path}", body=body)
            except (Unavailable, TimedOut) as error:
                failures.append(str(error))
                continue
            if 200 <= answer.status < 300 or 400 <= answer.status < 500:
                self._ask_first(pod)
                return answer
            failures.append(f"pod {pod.key}: {method} {API}{path}: {_describe_answer(answer)}")
        raise Unavailable("; ".join(failures) or "no pod with an address is selected by pdSelector")

    async def _list_pods(self) -> list[Pod]:
        if self._pods is None:
            found = await self._access.list_pods(self._selector)
            self._pods = sorted(found, key=lambda pod: not is_ready(pod))
        return self._pods[:MOST_ASKED]

    def _ask_first(self, pod: Pod) -> None:
        others = [one for one in self._pods or () if one is not pod]
        self._pods = [pod, *others]


def _require_success(answer: HttpAnswer, title: str) -> None:
    if not 200 <= answer.status < 300:
        raise LastcallError(f"{title}: {_describe_answer(answer)}")


def _describe_answer(answer: HttpAnswer) -> str:
    """The status, and what PD says: JSON text or plain."""
    text = bytes(answer.body).decode(errors="replace").strip()
    said = shorten_message(text.strip('"'))
    return f"answered {answer.status}{f': {said}' if said else ''}"
