"""What can go wrong, without a word about HTTP.

A kind is compared, never a text. Status codes and bodies per dialect live in `gatewayd.http.errors`,
exit codes in `gatewayctl.failures`.
"""

from enum import StrEnum
from typing import Final

MAX_NAME_CHARACTERS: Final = 100
"""Characters of what somebody sent that a sentence repeats."""


class ErrorKind(StrEnum):
    """Every way a request can fail (interface specification, section 7)."""

    # The request is malformed, or a field has a wrong value; `param` names the field.
    INVALID_REQUEST = "invalid_request"
    # A file without text was added to a collection (4.7).
    EMPTY_CONTENT = "empty_content"
    # No credential, or one that is unknown, expired or revoked.
    UNAUTHENTICATED = "unauthenticated"
    # The credential is good, the right is missing.
    FORBIDDEN = "forbidden"
    # The thing does not exist, or the actor may not know that it does.
    NOT_FOUND = "not_found"
    # The name, address or id is taken, or the state does not allow the change.
    CONFLICT = "conflict"
    # A body, field or list is over its limit.
    TOO_LARGE = "too_large"
    # Too many requests, here or at a provider; `retry_after` says when to try again.
    RATE_LIMITED = "rate_limited"
    # A provider answered, but not with what was asked for.
    UPSTREAM_FAILED = "upstream_failed"
    # A provider could not be reached, or said that it is overloaded.
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    # A plugin raised.
    PLUGIN_FAILED = "plugin_failed"
    # The feature needs a setting that is not set.
    NOT_CONFIGURED = "not_configured"
    # The gateway itself is at fault.
    INTERNAL = "internal"
    # The gateway cannot take the request now (starting, draining, database locked); try again.
    UNAVAILABLE = "unavailable"
    # Something outside did not answer in time.
    TIMEOUT = "timeout"


class GatewayError(Exception):
    """A failure with a kind and a sentence for the caller.

    `message` starts in lower case ("cannot ..."), has no full stop and names the field or id. It can always
    be written: what plugins say may have halves of surrogate pairs, which become "?".
    `param` is the request field at fault, `code` a stable machine word, `retry_after` seconds.
    `provider_code` is a provider's own word: callers are told it, and nothing else depends on it. `place` is
    where it went wrong, which those who run the gateway are told (`full_message`) and no caller over HTTP.
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
    ) -> None:
        self.message = message if message.isascii() else message.encode("utf-8", "replace").decode()
        super().__init__(self.message)
        self.kind = kind
        self.param = param
        self.code = code
        self.provider_code = provider_code
        self.retry_after = retry_after
        self.place = place

    @property
    def full_message(self) -> str:
        """The sentence for the log and the control socket."""
        return self.message if self.place is None else f"{self.message} at {self.place}"

    @property
    def told_code(self) -> str:
        """The word for programs that callers are told."""
        return self.code or self.provider_code or self.kind.value


def full_message(error: Exception) -> str:
    """Return what the log tells of an error that may be anybody's."""
    return error.full_message if isinstance(error, GatewayError) else str(error)


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> GatewayError:
    """Return the error for a bad request field."""
    return GatewayError(ErrorKind.INVALID_REQUEST, message, param=param, code=code)


def not_found(what: str, name: str) -> GatewayError:
    """Return the error for a missing thing, for example `not_found("user", "u1")`."""
    return GatewayError(ErrorKind.NOT_FOUND, f"cannot find {what} {shorten(name)!r}")


def shorten(text: str, longest: int = MAX_NAME_CHARACTERS) -> str:
    """Return a text from outside, cut so that a sentence can repeat it."""
    return text if len(text) <= longest else f"{text[:longest]}..."
