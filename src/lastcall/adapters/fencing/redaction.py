"""Redacts secrets in the output of programs and libraries (pure)."""

from collections.abc import Iterable
from shlex import quote
from urllib.parse import quote as url_quote
from urllib.parse import quote_plus

HIDDEN = "***"


def redact_secrets(text: str, secrets: Iterable[str]) -> str:
    """Replaces each secret in ``text`` by three asterisks, also where it is quoted or part of an address."""
    spellings = {form for secret in secrets if secret for form in _secret_spellings(secret)}
    for form in sorted(spellings, key=len, reverse=True):
        text = text.replace(form, HIDDEN)
    return text


def _secret_spellings(secret: str) -> set[str]:
    """The spellings in which a program may print a secret; the stripped one only if it is not empty."""
    forms = {secret, secret.strip(), quote(secret), repr(secret)[1:-1], url_quote(secret), url_quote(secret, safe="")}
    return {form for form in (*forms, quote_plus(secret)) if form}
