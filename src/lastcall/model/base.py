"""What all structs of Kubernetes facts have in common."""

from datetime import datetime
from typing import Annotated

import msgspec

Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""An RFC 3339 time of the API."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Frozen facts under their camelCase names; unknown fields are passed over.

    ``gc=False``: they hold no cycles, and a cluster's worth of them need not be walked by the collector.
    """
