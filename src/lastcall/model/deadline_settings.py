"""``deadlines`` of an AgentConfiguration: who else may announce that the machine goes down (pure)."""

from enum import Enum
from typing import Annotated

from msgspec import Meta

from lastcall.model.base import Facts
from lastcall.model.shutdown_notice import NoticeSource

_PATH = r"^/[^\x00-\x20]{0,99}\Z"
"""An absolute path; the path of a Unix socket has 107 bytes at most (unix(7))."""
_URL = r"^http://[A-Za-z0-9.:\[\]-]{1,200}\Z"
_UPS = r"^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,63}(@[A-Za-z0-9.:\[\]-]{1,200})?\Z"
"""As upsc(8) takes it: ``ups``, ``ups@host`` or ``ups@host:port``; never an option."""

METADATA = "http://169.254.169.254"
"""The metadata service of EC2, Google Cloud and Azure."""

Poll = Annotated[float, Meta(ge=1, le=60)]


class AzureEventType(Enum):
    """Kinds of scheduled events after which the machine is gone or boots again; Freeze only pauses it."""

    PREEMPT = "Preempt"
    TERMINATE = "Terminate"
    REBOOT = "Reboot"
    REDEPLOY = "Redeploy"


class RebalanceAction(Enum):
    """What a rebalance recommendation leads to, apart from the warning."""

    IGNORE = "Ignore"
    CORDON = "Cordon"


class SocketSettings(Facts, frozen=True):
    """A Unix socket of root's in the state directory, for scripts: ``lastcall shutdown-notice``."""


class Ec2SpotSettings(Facts, frozen=True):
    """The interruption notice of a spot instance, and the rebalance recommendation, which ends nothing."""

    endpoint: Annotated[str, Meta(pattern=_URL)] = METADATA
    poll_seconds: Poll = 5.0
    rebalance: RebalanceAction = RebalanceAction.IGNORE


class GcpSettings(Facts, frozen=True):
    """The preemption of a Spot VM of Google Cloud."""

    endpoint: Annotated[str, Meta(pattern=_URL)] = METADATA
    poll_seconds: Poll = 5.0
    """Seconds between two attempts while the service fails; it answers a waiting request at once otherwise."""


class AzureSettings(Facts, frozen=True):
    """The scheduled events of an Azure virtual machine."""

    endpoint: Annotated[str, Meta(pattern=_URL)] = METADATA
    poll_seconds: Poll = 5.0
    resource_name: str = ""
    """The machine's name in scheduled events; empty: the service is asked for it."""
    event_types: tuple[AzureEventType, ...] = tuple(AzureEventType)
    acknowledge: bool = False
    """Whether the event is started as soon as the pods have ended, instead of at its time."""


class NutSettings(Facts, frozen=True):
    """An uninterruptible power supply that Network UPS Tools watch."""

    ups: Annotated[str, Meta(pattern=_UPS)]
    poll_seconds: Poll = 5.0
    min_runtime_seconds: Annotated[float, Meta(ge=0, le=86400)] = 0.0
    """The shutdown begins when the battery lasts no longer than this; 0: only at low battery or a forced shutdown."""
    low_battery_seconds: Annotated[float, Meta(ge=1, le=3600)] = 60.0
    """How long the machine has at low battery if the UPS does not tell its runtime."""
    forced_shutdown_seconds: Annotated[float, Meta(ge=1, le=3600)] = 15.0
    """How long the machine has at a forced shutdown (FSD): HOSTSYNC of the primary's upsmon.conf(5)."""
    command: Annotated[str, Meta(pattern=_PATH)] = "/bin/upsc"


class DeadlineSettings(Facts, frozen=True):
    """The sources; one that is None is off."""

    lead_seconds: Annotated[float, Meta(ge=0, le=86400)] = 900.0
    """How long before a deadline the shutdown of the pods begins; at least the sum of the phases."""
    socket: SocketSettings | None = None
    ec2: Ec2SpotSettings | None = None
    gcp: GcpSettings | None = None
    azure: AzureSettings | None = None
    nut: NutSettings | None = None

    @property
    def sources(self) -> tuple[NoticeSource, ...]:
        """The sources that are on."""
        named = {
            NoticeSource.SOCKET: self.socket,
            NoticeSource.EC2: self.ec2,
            NoticeSource.GCP: self.gcp,
            NoticeSource.AZURE: self.azure,
            NoticeSource.NUT: self.nut,
        }
        return tuple(source for source, settings in named.items() if settings is not None)
