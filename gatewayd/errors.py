"""Errors of the gateway: kinds, the exception, and helpers, independent of HTTP.

Code compares kinds, never texts. Status codes and bodies per dialect are in `gatewayd.http.errors`, exit
codes in `gatewayctl.failures`.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

MAX_NAME_CHARACTERS: Final = 100
"""Maximum number of characters of a received text that a sentence repeats."""

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class ErrorKind(StrEnum):
    """Every way a request can fail; see gatewayd-api(7), FAILURES."""

    # The request is malformed, or a field has a wrong value; `param` names the field.
    INVALID_REQUEST = "invalid_request"
    # A file without text was added to a collection.
    EMPTY_CONTENT = "empty_content"
    # There is no credential, or it is unknown, expired or revoked.
    UNAUTHENTICATED = "unauthenticated"
    # The credential is valid, but the permission or grant is missing.
    FORBIDDEN = "forbidden"
    # The object does not exist, or the actor may not know that it exists.
    NOT_FOUND = "not_found"
    # The name, address or id is taken, or the state does not allow the change.
    CONFLICT = "conflict"
    # A body, field or list is over its limit.
    TOO_LARGE = "too_large"
    # Too many requests, here or at a provider; `retry_after` says when to try again.
    RATE_LIMITED = "rate_limited"
    # A provider answered with an error or an unusable reply.
    UPSTREAM_FAILED = "upstream_failed"
    # A provider could not be reached or is overloaded.
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    # A plugin raised.
    PLUGIN_FAILED = "plugin_failed"
    # The feature needs a setting that is not set.
    NOT_CONFIGURED = "not_configured"
    # The gateway has a fault of its own.
    INTERNAL = "internal"
    # The gateway cannot take the request now (starting, draining, database locked); try again.
    UNAVAILABLE = "unavailable"
    # A provider, service or worker did not answer in time.
    TIMEOUT = "timeout"


class GatewayError(Exception):
    """A failure with a kind and a sentence for the caller.

    `message` starts in lower case ("cannot ..."), has no full stop and names the field or id. It is valid
    Unicode: lone surrogates, which texts of plugins may contain, become "?".
    `param` is the request field at fault, `code` a stable machine-readable word, `retry_after` seconds.
    `provider_code` is the code of a provider: it is passed to callers, and nothing else depends on it.
    `headers` are those of a provider's refusal that callers get (`completions.rate_limits`).
    `place` is the place of the failure, which only the log and the control API show (`full_message`).
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        provider_code: str | None = None,
        retry_after: int | None = None,
        place: str | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        self.message = message if message.isascii() else message.encode("utf-8", "replace").decode()
        super().__init__(self.message)
        self.kind = kind
        self.param = param
        self.code = code
        self.provider_code = provider_code
        self.retry_after = retry_after
        self.place = place
        self.headers = headers

    @property
    def full_message(self) -> str:
        """The sentence for the log and the control API."""
        return self.message if self.place is None else f"{self.message} at {self.place}"

    @property
    def told_code(self) -> str:
        """The machine-readable code in the reply to the caller."""
        return self.code or self.provider_code or self.kind.value


def full_message(error: Exception) -> str:
    """Return the sentence for the log of any exception."""
    return error.full_message if isinstance(error, GatewayError) else str(error)


def system_reason(error: OSError) -> str:
    """Return the reason of the operating system, in lower case for the end of a sentence."""
    return (error.strerror or str(error)).lower()


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> GatewayError:
    """Return the error for a bad request field."""
    return GatewayError(ErrorKind.INVALID_REQUEST, message, param=param, code=code)


def not_found(what: str, name: str) -> GatewayError:
    """Return the error for a missing object, for example `not_found("user", "u1")`."""
    return GatewayError(ErrorKind.NOT_FOUND, f"cannot find {what} {shorten(name)!r}")


def shorten(text: str, longest: int = MAX_NAME_CHARACTERS) -> str:
    """Return a received text, cut so that a sentence can repeat it."""
    return text if len(text) <= longest else f"{text[:longest]}..."
