"""The guard's ValidatingWebhookConfiguration: where the API server finds it, and whom it trusts."""

import base64
from typing import Final
from urllib.parse import urlsplit

from lastcall.adapters.kube.client import Client
from lastcall.adapters.kube.resources import VALIDATING_WEBHOOKS, Object
from lastcall.errors import Conflict, NotFound

NAME: Final = "lastcall-guard"


class WebhookConfiguration:
    """Needs get and update on the one configuration.

    It is never created here, since whoever may create such objects sees and refuses every request of the cluster.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ensure(self, *, authorities: str, path: str) -> bool:
        """Sets path and trusted authorities (PEM) in all webhooks; False if there is no configuration.

        Without authorities the API server trusts those of its own machine.
        """
        while True:
            try:
                found = await self._client.get(VALIDATING_WEBHOOKS, NAME)
                if _set_client(found, authorities, path):
                    await self._client.update(VALIDATING_WEBHOOKS, NAME, found)
                return True
            except Conflict:
                continue
            except NotFound:
                return False


def _set_client(configuration: Object, authorities: str, path: str) -> bool:
    """Changes the object; whether anything was different."""
    bundle = base64.b64encode(authorities.encode()).decode()
    has_changed = False
    for webhook in configuration.get("webhooks") or ():
        client = webhook["clientConfig"]
        wanted = dict(client) | {"caBundle": bundle}
        if "service" in client:
            wanted["service"] = client["service"] | {"path": path}
        else:
            wanted["url"] = urlsplit(client["url"])._replace(path=path).geturl()
        has_changed |= wanted != client
        webhook["clientConfig"] = wanted
    return has_changed
