"""What is common to the rounds over all objects: one failure does not stop the others."""

import contextlib
import logging
from collections.abc import AsyncIterator

from lastcall.errors import Conflict, LastcallError
from lastcall.model.pods import ObjectMetadata

log = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def skip_failure(kind: str, metadata: ObjectMetadata) -> AsyncIterator[None]:
    """Ends the work on one object at a failure, which is logged. The next round tries again."""
    try:
        yield
    except Conflict as error:
        log.debug("%s %s/%s was changed meanwhile: %s", kind, metadata.namespace, metadata.name, error)
    except LastcallError as error:
        log.warning("%s %s/%s: %s", kind, metadata.namespace, metadata.name, error)
