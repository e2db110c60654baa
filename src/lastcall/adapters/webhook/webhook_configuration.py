"""The guard's webhook configurations: where the API server finds it, and whom it trusts."""

import base64
import logging
from collections.abc import Sequence
from urllib.parse import urlsplit

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import ApiResource, Object
from lastcall.errors import ApiNotPermitted, Conflict, NotFound
from lastcall.model.guard_webhooks import remove_webhooks, replace_withdrawn_webhooks, withdrawn_webhooks

log = logging.getLogger(__name__)


class WebhookConfiguration:
    """Needs get and update on the one configuration.

    It is never created here, since whoever may create such objects sees and refuses every request of the cluster.
    """

    def __init__(self, client: Client, resource: ApiResource[Object], name: str, *, path: str) -> None:
        """``path`` is that of its webhooks, which the secret part follows."""
        self._client = client
        self._resource = resource
        self._name = name
        self._path = path

    @property
    def name(self) -> str:
        """The object's name."""
        return self._name

    async def ensure(self, *, authorities: str, token: str) -> bool:
        """Sets path and trusted authorities (PEM) in all webhooks; False if there is no configuration.

        ``token`` is the secret part of the path, "" for none.

        Without authorities the API server trusts those of its own machine. Webhooks that the controller has withdrawn get
        both too, so that the guard is found at once when they come back.
        """
        path = f"{self._path}/{token}" if token else self._path
        while True:
            try:
                found = await self._client.get(self._resource, self._name)
                wanted = _with_client(found, authorities, path)
                if wanted != found:
                    await self._client.update(self._resource, self._name, wanted)
                return True
            except Conflict:
                continue
            except NotFound:
                return False

    async def end(self) -> None:
        """``ports.guard_cluster.GuardHolds.end``: webhooks that the controller has withdrawn do not come back either."""
        while True:
            try:
                found = await self._client.get(self._resource, self._name)
                if wanted := remove_webhooks(found):
                    await self._client.update(self._resource, self._name, wanted)
                return
            except Conflict:
                continue
            except NotFound:
                return


class WebhookConfigurations:
    """Several of them as one. A missing right to one of ``others`` is a warning, once: deletions are held all the same."""

    def __init__(self, holds: WebhookConfiguration, others: Sequence[WebhookConfiguration]) -> None:
        self._holds = holds
        self._others = others
        self._refused: set[str] = set()

    async def ensure(self, *, authorities: str, token: str) -> bool:
        """The same for each; False if one is missing. One that may not be written counts as told until the next time."""
        told = await self._holds.ensure(authorities=authorities, token=token)
        others = [await self._try(one, authorities, token) for one in self._others]
        return told and all(others)

    async def _try(self, one: WebhookConfiguration, authorities: str, token: str) -> bool:
        try:
            is_there = await one.ensure(authorities=authorities, token=token)
        except ApiNotPermitted as error:
            if one.name not in self._refused:
                log.warning("the API server does not find the guard by the webhooks of %s: %s", one.name, error)
            self._refused.add(one.name)
            return True
        self._refused.discard(one.name)
        return is_there


def _with_client(configuration: Object, authorities: str, path: str) -> Object:
    """The configuration as it is wanted; the same content if nothing is different."""
    bundle = base64.b64encode(authorities.encode()).decode()
    found = {**configuration}
    if webhooks := configuration.get("webhooks"):
        found["webhooks"] = [_set_client(one, bundle, path) for one in webhooks]
    withdrawn = withdrawn_webhooks(configuration)
    wanted = [_set_client(one, bundle, path) for one in withdrawn]
    return found if wanted == withdrawn else replace_withdrawn_webhooks(found, wanted)


def _set_client(webhook: Object, bundle: str, path: str) -> Object:
    client = webhook["clientConfig"]
    wanted = {**client, "caBundle": bundle}
    if "service" in client:
        wanted["service"] = client["service"] | {"path": path}
    elif "url" in client:
        wanted["url"] = urlsplit(client["url"])._replace(path=path).geturl()
    return {**webhook, "clientConfig": wanted}
