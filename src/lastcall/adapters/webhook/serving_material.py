"""What the replicas of the guard serve with, and until when (no I/O)."""

from lastcall.model.base import Facts, Time


class ServingMaterial(Facts, frozen=True):
    """What is served with. ``authorities`` may also hold the one before, in PEM, the newest first."""

    authorities: str
    certificate: str
    key: str
    authority_key: str = ""
    path_token: str = ""
    """A secret part of the webhook's path: only who may read the webhook configuration or this Secret knows it."""


class Renewal(Facts, frozen=True):
    """The material that is served with from now on, the same one if it is not due, and when it is to be renewed."""

    material: ServingMaterial
    due_at: Time
