"""Notices that this machine will go down at a certain time, from other sources than logind (pure)."""

from enum import Enum

from lastcall.model.base import Facts

LOGIND = "Logind"
"""The name of logind among the sources that announce a shutdown."""


class NoticeSource(Enum):
    """Who can announce that the machine will go down; the values are in the configuration, metrics and reports."""

    SOCKET = "Socket"
    EC2 = "EC2"
    GCP = "GCP"
    AZURE = "Azure"
    NUT = "NUT"


class ShutdownNotice(Facts, frozen=True):
    """A source's word that the machine will be gone at ``deadline`` (CLOCK_BOOTTIME seconds).

    ``key`` tells this notice from the source's next one. ``reason`` is for people.
    """

    source: NoticeSource
    key: str
    deadline: float
    reason: str
