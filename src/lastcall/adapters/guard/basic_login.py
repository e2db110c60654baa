"""The header of HTTP's Basic authentication, with the password of a Secret."""

from base64 import b64encode

from lastcall.adapters.guard.settings import SecretSource
from lastcall.ports.guard import NamespaceAccess


async def list_login_headers(
    access: NamespaceAccess, username: str, source: SecretSource | None
) -> list[tuple[str, str]]:
    """The header, or none without a Secret; key ``password`` unless the source names another. Errors as of the Secret."""
    if source is None:
        return []
    password = await access.read_secret(source.name, source.key or "password")
    login = b64encode(f"{username}:{password}".encode()).decode()
    return [("authorization", f"Basic {login}")]
