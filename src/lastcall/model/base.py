"""The base class of all structs of Kubernetes facts."""

from datetime import datetime
from typing import Annotated

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""An RFC 3339 time of the API."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Frozen facts under their camelCase names; unknown fields are ignored.

    ``gc=False``: the structs hold no cycles, so the garbage collector need not traverse a cluster's worth of them.
    """
