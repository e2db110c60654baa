"""Image names, as far as defaults depend on them (``github.com/distribution/reference``), pure."""

import re

_PATH = re.compile(r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)


def is_latest(image: str) -> bool:
    """Whether the image has the explicit or implied tag ``latest``; an invalid name has no tag."""
    name, at, _ = image.partition("@")
    head, slash, rest = name.rpartition("/")
    last, colon, tag = rest.partition(":")
    if not _PATH.fullmatch(_without_domain(f"{head}{slash}{last}")) or (colon and not _TAG.fullmatch(tag)):
        return False
    return tag == "latest" or not (tag or at)


def _without_domain(name: str) -> str:
    domain, slash, path = name.partition("/")
    has_domain = slash and ("." in domain or ":" in domain or domain == "localhost" or domain != domain.lower())
    return path if has_domain else name
