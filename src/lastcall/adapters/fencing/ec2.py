"""A fence for an instance of Amazon EC2, which boto3 controls in a process of its own.

Region and instance come from the Node's ``spec.providerID`` (``aws:///eu-central-1a/i-0123...``), which the cloud's
node controller has written; no other source identifies the machine. EC2 answers from replicas that lag behind. So **not
found** proves nothing (another region, another account, a stale replica), and an answer about another instance, or
about more than one, counts as no answer.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from lastcall.adapters.fencing.fence_worker import FenceWorker
from lastcall.adapters.fencing.library_fence import LibraryFence
from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.ports.node import Clock

_PROCESS = "lastcall.adapters.fencing.ec2_worker"
_PROVIDER = re.compile(r"aws://[^/]*/(?P<zone>[^/]*)/(?P<instance>i-[0-9a-f]+)", re.ASCII)
_REGION = re.compile(r"([a-zA-Z]+-)+\d+")
"""The region in a zone's name: local zones too are named after their region (cloud-provider-aws: ``azToRegion``)."""
_PASSED = re.compile(r"AWS_\w+|HOME|PATH|SSL_CERT_FILE|SSL_CERT_DIR|(?:HTTPS?|NO)_PROXY|(?:https?|no)_proxy")
"""Variables that the SDK reads from its environment: sources of credentials, and how to reach the API."""


class InstanceLocation(NamedTuple):
    """The region and the id of an instance."""

    region: str
    """Empty if the providerID names no zone."""
    instance: str


class Ec2Settings(Facts, frozen=True):
    """Settings for one instance, secrets included: they are passed over standard input only."""

    instance: str
    region: str
    endpoint: str = ""
    """Empty: Amazon's own endpoint, or the environment's."""
    access_key_id: str = ""
    """Empty: the SDK finds credentials by itself (environment, IRSA, the instance's role)."""
    secret_access_key: str = ""


def parse_provider_id(provider_id: str) -> InstanceLocation | None:
    """Parses a providerID; None if it does not name an EC2 instance (Fargate's do not)."""
    found = _PROVIDER.fullmatch(provider_id)
    if found is None:
        return None
    region = _REGION.match(found["zone"])
    return InstanceLocation(region[0] if region else "", found["instance"])


def instance_settings(
    provider_id: str,
    *,
    region: str = "",
    endpoint: str = "",
    credentials: tuple[str, str] | None = None,
    source: str = "ec2",
) -> Ec2Settings:
    """The settings for a Node's instance; ``region`` overrides the zone's. InvalidInput names what is wrong."""
    found = parse_provider_id(provider_id)
    if found is None:
        raise InvalidInput(source, [f'spec.providerID of the Node is "{provider_id}": must be aws:///<zone>/i-...'])
    if not (region or found.region):
        raise InvalidInput(source, [f"region: empty: must be given, since {provider_id} names no zone"])
    if credentials and not all(credentials):
        raise InvalidInput(source, ["credentials: access key id or secret access key is empty"])
    key, secret = credentials or ("", "")
    return Ec2Settings(
        instance=found.instance,
        region=region or found.region,
        endpoint=endpoint,
        access_key_id=key,
        secret_access_key=secret,
    )


def ec2_fence(
    name: str, settings: Ec2Settings, *, clock: Clock, environ: Mapping[str, str], patience: float
) -> LibraryFence:
    """A fence of EC2. ``patience``: seconds for a read request; ``environ``: where the SDK may find credentials."""
    passed = {key: value for key, value in environ.items() if _PASSED.fullmatch(key)}
    secrets = (settings.secret_access_key, passed.get("AWS_SECRET_ACCESS_KEY", ""), passed.get("AWS_SESSION_TOKEN", ""))
    return LibraryFence(name, FenceWorker(_PROCESS, settings, clock, passed, secrets), patience=patience)
