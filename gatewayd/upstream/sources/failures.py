"""Errors of a provider: refusals, error events and broken connections as `GatewayError`.

Each error names the provider and keeps its sentence. The status of the provider is not passed on (its 401 is
about the key of the gateway), and keys are removed from texts.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from gatewayd import ids
from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.provider_errors import (
    OVERFLOW,
    QUOTA,
    QUOTA_CODES,
    ReportedFailure,
    parse_reported_failure,
)
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.upstream.http.client import TransportError

MAX_MESSAGE_CHARACTERS = 500
"""Maximum number of characters of the sentence of a provider."""

MAX_EXAMINED_CHARACTERS = 8000
"""Maximum number of characters of that sentence that are examined before it is shortened."""

MAX_RETRY_AFTER_SECONDS = 86_400
"""Maximum of `retry_after`; a larger value of a provider is reduced to it."""

NOTHING_REPORTED = ReportedFailure()

KEY_STATUSES = frozenset({401, 403})
"""Statuses about the key of the gateway: callers receive the sentence, but no code."""

_NAMED = QUOTA_CODES | {OVERFLOW}
"""Codes that the sentence contains too, because some clients search for them there."""

REDACTED = "[redacted]"

_KEY_LIKE = re.compile(r"\b(?:sk|pk|gsk|xai|key|api)[-_][\w*.…-]{6,}|(?<=[Bb]earer )\S+")

_KINDS_BY_STATUS = {
    400: ErrorKind.INVALID_REQUEST,
    404: ErrorKind.NOT_FOUND,
    413: ErrorKind.INVALID_REQUEST,
    422: ErrorKind.INVALID_REQUEST,
    429: ErrorKind.RATE_LIMITED,
    503: ErrorKind.UPSTREAM_UNREACHABLE,
    529: ErrorKind.UPSTREAM_UNREACHABLE,
}

_KINDS_BY_TYPE = {
    "invalid_request_error": ErrorKind.INVALID_REQUEST,
    "request_too_large": ErrorKind.INVALID_REQUEST,
    "not_found_error": ErrorKind.NOT_FOUND,
    "rate_limit_error": ErrorKind.RATE_LIMITED,
    "rate_limit_exceeded": ErrorKind.RATE_LIMITED,
    QUOTA: ErrorKind.RATE_LIMITED,
    "overloaded_error": ErrorKind.UPSTREAM_UNREACHABLE,
    "server_is_overloaded": ErrorKind.UPSTREAM_UNREACHABLE,
    "service_unavailable_error": ErrorKind.UPSTREAM_UNREACHABLE,
    "timeout_error": ErrorKind.TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class ProviderFailures:
    """Factory of the errors of one provider; `key` never appears in one."""

    provider: str
    key: str | None = None

    def error(
        self,
        kind: ErrorKind,
        sentence: str,
        *,
        reported: ReportedFailure = NOTHING_REPORTED,
        retry_after: int | None = None,
    ) -> GatewayError:
        """Return the error "cannot get an answer from provider ...: <sentence>"."""
        text = f"cannot get an answer from provider {self.provider!r}: {sentence}"
        return GatewayError(
            kind,
            text,
            param=self._unless_secret(reported.param),
            provider_code=self._unless_secret(reported.code),
            retry_after=retry_after,
        )

    def broken(self, sentence: str) -> GatewayError:
        """Return the error for an unusable answer."""
        return self.error(ErrorKind.UPSTREAM_FAILED, sentence)

    def from_transport(self, error: TransportError) -> GatewayError:
        """Return the error for a failed connection."""
        return self.error(error.kind, self.clean(error.sentence))

    def from_answer(self, status: int, headers: Mapping[str, str], body: bytes) -> GatewayError:
        """Return the error for an answer with a status other than 200; `body` may be truncated."""
        if 300 <= status < 400:
            return self.broken(f"it answered {status}, and redirects are not followed: correct its base_url")
        kind = _KINDS_BY_STATUS.get(status, ErrorKind.UPSTREAM_FAILED)
        retry_after = None
        if kind in {ErrorKind.RATE_LIMITED, ErrorKind.UPSTREAM_UNREACHABLE}:
            retry_after = parse_retry_after(headers.get("Retry-After"), ids.now())
        answer = _json_in(body)
        detail = self._describe_body(headers.get("Content-Type", ""), body, answer)
        reported = NOTHING_REPORTED
        if status not in KEY_STATUSES:
            # Only the message of a refused request shows whether the request is too long.
            is_refusal = kind is ErrorKind.INVALID_REQUEST
            reported = parse_reported_failure(answer, (error_message_in(answer) or "") if is_refusal else "")
        if reported.code == OVERFLOW:
            kind = ErrorKind.INVALID_REQUEST
        named = f"{status} {reported.code}" if reported.code in _NAMED else status
        return self.error(kind, f"it answered {named} {detail}", reported=reported, retry_after=retry_after)

    def from_event(self, error: object) -> GatewayError:
        """Return the error for an error object in an answer with status 200."""
        reason = error_message_in({"error": error}) or ""
        reported = parse_reported_failure({"error": error}, reason)
        kind = ErrorKind.INVALID_REQUEST if reported.code == OVERFLOW else _kind_of_event(error)
        message = self.clean(reason or "an error without a message")
        named = f" {reported.code}" if reported.code in _NAMED else ""
        return self.error(kind, f"it reported{named}: {message}", reported=reported)

    def clean(self, text: str) -> str:
        """Return a text of the provider as one short line, without keys and control characters."""
        line = self._redact(" ".join(text[:MAX_EXAMINED_CHARACTERS].split()))
        line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
        return line if len(line) <= MAX_MESSAGE_CHARACTERS else line[: MAX_MESSAGE_CHARACTERS - 1] + "…"

    def redacted(self, data: bytes) -> bytes:
        """Return bytes of an answer with the key removed."""
        return data.replace(self.key.encode(), REDACTED.encode()) if self.key else data

    def redacted_text(self, data: bytes) -> bytes:
        """Return bytes of a refusal with the key and parts of it removed."""
        if self.key is None:
            return data
        return self._redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _unless_secret(self, word: str | None) -> str | None:
        return word if word is not None and self._redact(word) == word else None

    def _redact(self, text: str) -> str:
        if self.key:
            text = text.replace(self.key, REDACTED)
            if len(self.key) >= 12:
                head, tail = re.escape(self.key[:6]), re.escape(self.key[-6:])
                text = re.sub(rf"{head}\S*|\b[\w*.-]{{0,200}}{tail}", REDACTED, text)
        return _KEY_LIKE.sub(REDACTED, text)

    def _describe_body(self, content_type: str, body: bytes, answer: object) -> str:
        if not body.strip():
            return "with an empty body"
        text = body.decode("utf-8", "replace")
        if "html" in content_type.lower() or text.lstrip()[:1] == "<":
            return "with an HTML page"
        message = error_message_in(answer)
        return f"({self.clean(message if message is not None else text)})"


def parse_retry_after(value: str | None, now: int) -> int | None:
    """Return the seconds of a Retry-After header (seconds or an HTTP date), None if it is invalid."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _seconds_until(value, now)
    if not math.isfinite(seconds):
        return None
    return min(max(math.ceil(seconds), 0), MAX_RETRY_AFTER_SECONDS)


def _seconds_until(date: str, now: int) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError):
        return math.nan


def _json_in(body: bytes) -> object:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _kind_of_event(error: object) -> ErrorKind:
    if not isinstance(error, Mapping):
        return ErrorKind.UPSTREAM_FAILED
    for name in ("status", "code", "type"):
        kind = _kind_of_word(error.get(name))
        if kind is not None:
            return kind
    return ErrorKind.UPSTREAM_FAILED


def _kind_of_word(word: Any) -> ErrorKind | None:
    if isinstance(word, str):
        return (
            _KINDS_BY_STATUS.get(int(word))
            if word.isdecimal() and len(word) == 3
            else _KINDS_BY_TYPE.get(word)
        )
    return _KINDS_BY_STATUS.get(word) if isinstance(word, int) else None
