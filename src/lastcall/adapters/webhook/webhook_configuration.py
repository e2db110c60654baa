"""The guard's ValidatingWebhookConfiguration: where the API server finds it, and whom it trusts."""

import base64
from urllib.parse import urlsplit

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VALIDATING_WEBHOOKS, Object
from lastcall.errors import Conflict, NotFound
from lastcall.model.guard_webhooks import NAME, replace_withdrawn_webhooks, withdrawn_webhooks


class WebhookConfiguration:
    """Needs get and update on the one configuration.

    It is never created here, since whoever may create such objects sees and refuses every request of the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ensure(self, *, authorities: str, path: str) -> bool:
        """Sets path and trusted authorities (PEM) in all webhooks; False if there is no configuration.

        Without authorities the API server trusts those of its own machine. Webhooks that the controller has withdrawn get
        both too, so that the guard is found at once when they come back.
        """
        while True:
            try:
                found = await self._client.get(VALIDATING_WEBHOOKS, NAME)
                wanted = _with_client(found, authorities, path)
                if wanted != found:
                    await self._client.update(VALIDATING_WEBHOOKS, NAME, wanted)
                return True
            except Conflict:
                continue
            except NotFound:
                return False


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
