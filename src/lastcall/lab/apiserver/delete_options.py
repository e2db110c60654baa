"""What a DELETE says, in its body and in its query (``meta/v1 DeleteOptions``)."""

from typing import Any

from lastcall.lab.apiserver import media, status
from lastcall.lab.apiserver.context import Context
from lastcall.lab.apiserver.kinds.base import Options


def delete_options(context: Context) -> Options:
    """Both together; where both speak of the same, the body counts. ApiError if it cannot be understood."""
    request = context.request
    said: dict[str, Any] = media.decoded(request) if request.body else {}
    if not isinstance(said, dict) or said.get("kind", "DeleteOptions") != "DeleteOptions":
        kind = said.get("kind", "") if isinstance(said, dict) else ""
        version = said.get("apiVersion", "") if isinstance(said, dict) else ""
        raise status.bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "lastcall lab"')
    if not request.body:
        said = from_query(context)
    preconditions = said.get("preconditions") or {}
    return Options(
        grace=said.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        revision=preconditions.get("resourceVersion"),
        propagation=said.get("propagationPolicy"),
        dry_run=context.dry_run or bool(said.get("dryRun")),
        said={"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", **said},
    )


def from_query(context: Context) -> dict[str, Any]:
    """The parameters by which a DELETE without a body says the same."""
    request = context.request
    said: dict[str, Any] = {}
    if text := request.parameter("gracePeriodSeconds"):
        said["gracePeriodSeconds"] = int(text)
    if policy := request.parameter("propagationPolicy"):
        said["propagationPolicy"] = policy
    if context.dry_run:
        said["dryRun"] = ["All"]
    return said
