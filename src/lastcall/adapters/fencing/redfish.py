"""A fence for a machine behind a Redfish service (DMTF DSP0266), which sushy controls in a process of its own.

The policy always names the system: a service may have several, and the first of a list is arbitrary. User and password
go with each request (HTTP Basic, which every service must offer). A session would stay open on the BMC, which has few,
when the process is killed. Certificates are verified; proxies, netrc and the host's settings of the requests library
are ignored.
"""

import re
from urllib.parse import urlsplit

import msgspec

from lastcall.adapters.fencing.fence_worker import FenceWorker
from lastcall.adapters.fencing.library_fence import LibraryFence
from lastcall.errors import InvalidInput
from lastcall.model.base import Facts
from lastcall.ports.node import Clock

_PROCESS = "lastcall.adapters.fencing.redfish_worker"
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "NETRC": "/dev/null", "LC_ALL": "C.UTF-8"}
_SYSTEMS = "/redfish/v1/Systems"
_MEMBER = re.compile(r"[^/?#\s]+")
_PATH = re.compile(r"/redfish/v1/(?:[^/?#\s]+/)*[^/?#\s]+")


class RedfishSettings(Facts, frozen=True):
    """Settings for one machine, secrets included: they are passed over standard input only."""

    address: str
    """``https://host[:port]``."""
    system_id: str = msgspec.field(name="systemID")
    """The ``Id`` of a member of /redfish/v1/Systems, or its whole path (``@odata.id``)."""
    username: str
    password: str
    authority: str = ""
    """Certificates in PEM that verify the service's own; empty: those of the host."""
    insecure: bool = False
    """Accept any certificate."""

    @property
    def system_path(self) -> str:
        """The path of the system on the service."""
        return self.system_id if self.system_id.startswith("/") else f"{_SYSTEMS}/{self.system_id}"


def settings_violations(settings: RedfishSettings) -> list[str]:
    """The violations in the settings, each with its field; no secret is quoted."""
    wrong = []
    try:
        address = urlsplit(settings.address)
        host = address.hostname if address.port != 0 else None  # an invalid port raises
    except ValueError:
        address, host = None, None
    if address is None or not host or address.scheme not in ("http", "https") or address.path not in ("", "/"):
        wrong.append("address: must be https://host[:port]")
    elif address.username is not None or address.query or address.fragment:
        wrong.append("address: must hold neither user nor query")
    if not (_PATH if settings.system_id.startswith("/") else _MEMBER).fullmatch(settings.system_id):
        wrong.append(f"systemID: must be the id of a member of {_SYSTEMS}, or its path")
    elif {".", ".."} & set(settings.system_id.split("/")):
        wrong.append("systemID: must not lead upwards")
    if not settings.username:
        wrong.append("credentials: the user's name is empty")
    if settings.insecure and settings.authority:
        wrong.append("insecureSkipTLSVerify: cannot be true beside a certificate authority")
    return wrong


def redfish_fence(
    name: str, settings: RedfishSettings, *, clock: Clock, patience: float, source: str = "redfish"
) -> LibraryFence:
    """A Redfish fence. ``patience``: seconds for a read request. InvalidInput names the field that is wrong."""
    if wrong := settings_violations(settings):
        raise InvalidInput(source, wrong)
    errand = FenceWorker(_PROCESS, settings, clock, _ENVIRONMENT, secrets=(settings.password,))
    return LibraryFence(name, errand, patience=patience)
