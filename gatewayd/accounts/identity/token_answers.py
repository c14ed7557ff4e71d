"""Answers of token endpoints (RFC 6749, 5.1)."""

from typing import Any, Final

from gatewayd.accounts.identity.external_accounts import refuse
from gatewayd.accounts.identity.providers import JsonObject
from gatewayd.accounts.identity.records import ProviderTokens, RefusalCode

MAX_TOKEN_CHARACTERS: Final = 64 * 1024
MAX_TOKEN_SECONDS: Final = 366 * 86_400
"""Longest life of an access token that is believed."""


def read_tokens(answer: JsonObject, now: int) -> ProviderTokens:
    """Return the tokens of an answer; raise forbidden without a usable access token."""
    access_token = answer.get("access_token")
    if not isinstance(access_token, str) or not 0 < len(access_token) <= MAX_TOKEN_CHARACTERS:
        raise refuse(RefusalCode.PROVIDER, "the provider sent no access token")
    if not access_token.isascii() or not access_token.isprintable():
        raise refuse(RefusalCode.PROVIDER, "the access token is not plain")
    return ProviderTokens(
        _token(answer.get("id_token")),
        _token(answer.get("refresh_token")),
        access_token,
        _expires_at(answer.get("expires_in"), now),
    )


def _token(value: Any) -> str:
    is_token = isinstance(value, str) and len(value) <= MAX_TOKEN_CHARACTERS and value.isascii()
    return str(value) if is_token else ""


def _expires_at(value: Any, now: int) -> int:
    """Return when a token expires; some providers send the seconds as a text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TOKEN_SECONDS:
        return 0
    return now + int(value)
