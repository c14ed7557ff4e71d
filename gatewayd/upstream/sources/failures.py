"""Errors of a provider: refusals, error events and broken connections as `GatewayError`.

Each error names the provider and keeps its sentence. The status of the provider is not passed on (its 401 is
about the key of the gateway), and keys are removed from texts.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import orjson

from gatewayd import ids
from gatewayd.catalog.interfaces import NativeProtocol, NativeRefusalError, RefusedAnswer
from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.provider_errors import ReportedFailure, parse_reported_failure, says_overflow
from gatewayd.completions.rate_limits import parse_duration
from gatewayd.completions.refusal_reasons import (
    RefusalReason,
    classify,
    reason_of,
    retry_delay_in,
    told_code,
)
from gatewayd.errors import NO_HEADERS, ErrorKind, GatewayError
from gatewayd.upstream.http.client import TransportError

MAX_MESSAGE_CHARACTERS = 500
"""Maximum number of characters of the sentence of a provider."""

MAX_EXAMINED_CHARACTERS = 8000
"""Maximum number of characters of that sentence that are examined before it is shortened."""

MAX_RETRY_AFTER_SECONDS = 86_400
"""Maximum of `retry_after`; a larger value of a provider is reduced to it."""

NOTHING_REPORTED = ReportedFailure()

PARAMS = {RefusalReason.TOO_LONG: "messages", RefusalReason.UNKNOWN_MODEL: "model"}
"""Parameter that a refusal is about if the provider names none."""

NAMED_REASONS = frozenset({RefusalReason.TOO_LONG, RefusalReason.NO_CREDIT, RefusalReason.FILTERED})
"""Reasons whose code the sentence contains too, because some clients search for it there."""

LONGER = "the request is longer than the model's context length"
"""What follows the code of a too long request: clients that read sentences only look for the last words."""

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
    "timeout_error": ErrorKind.TIMEOUT,
}

KINDS_BY_REASON = {
    RefusalReason.TOO_LONG: ErrorKind.INVALID_REQUEST,
    RefusalReason.NO_CREDIT: ErrorKind.RATE_LIMITED,
    RefusalReason.FILTERED: ErrorKind.INVALID_REQUEST,
    RefusalReason.OVERLOADED: ErrorKind.UPSTREAM_UNREACHABLE,
    RefusalReason.UNKNOWN_MODEL: ErrorKind.NOT_FOUND,
    RefusalReason.RATE_LIMITED: ErrorKind.RATE_LIMITED,
    RefusalReason.KEY: ErrorKind.UPSTREAM_FAILED,
}

MESSAGE_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""Status of each type of an error of the messages protocol that came in a stream."""

_SENTENCE_STATUSES = frozenset({400, 413, 422})
"""Statuses of a refused request, whose sentence may say that the request is too long."""

_WAITING_KINDS = frozenset({ErrorKind.RATE_LIMITED, ErrorKind.UPSTREAM_UNREACHABLE})
"""Kinds of errors that may tell how long to wait."""


@dataclass(frozen=True, slots=True)
class ProviderFailures:
    """Factory of the errors of one provider; `key` and `secrets` never appear in one.

    With `is_messages` the provider speaks the messages protocol, and its errors in a stream are kept in its
    own words for callers of that protocol.
    """

    provider: str
    key: str | None = None
    is_messages: bool = False
    secrets: tuple[str, ...] = ()

    def error(
        self,
        kind: ErrorKind,
        sentence: str,
        *,
        reported: ReportedFailure = NOTHING_REPORTED,
        retry_after: int | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> GatewayError:
        """Return the error "cannot get an answer from provider ...: <sentence>"."""
        text = f"cannot get an answer from provider {self.provider!r}: {sentence}"
        return GatewayError(
            kind,
            text,
            param=self._unless_secret(reported.param),
            provider_code=self._unless_secret(reported.code),
            retry_after=retry_after,
            headers=headers,
        )

    def broken(self, sentence: str) -> GatewayError:
        """Return the error for an unusable answer."""
        return self.error(ErrorKind.UPSTREAM_FAILED, sentence)

    def from_transport(self, error: TransportError) -> GatewayError:
        """Return the error for a failed connection."""
        return self.error(error.kind, self.clean(error.sentence))

    def from_answer(
        self, status: int, headers: Mapping[str, str], body: bytes, passed: Mapping[str, str] = NO_HEADERS
    ) -> GatewayError:
        """Return the error for an answer with a status other than 200; `body` may be truncated.

        `passed` are those of its headers that callers get.
        """
        if 300 <= status < 400:
            return self.broken(f"it answered {status}, and redirects are not followed: correct its base_url")
        answer = _json_in(body)
        sentence = _sentence_in(answer, body)
        reason = classify(answer, sentence, status)
        if (status in _SENTENCE_STATUSES and says_overflow(sentence)) or (status == 413 and not body.strip()):
            reason = RefusalReason.TOO_LONG
        reported = _reported(reason, parse_reported_failure(answer))
        kind = _KINDS_BY_STATUS.get(status, ErrorKind.UPSTREAM_FAILED)
        kind = kind if reason is None else KINDS_BY_REASON[reason]
        retry_after = None
        if kind in _WAITING_KINDS and reason is not RefusalReason.NO_CREDIT:
            retry_after = told_wait(headers, answer)
        named = status if reason not in NAMED_REASONS else f"{status} {_name(reason, reported)}"
        detail = self._describe_body(headers.get("Content-Type", ""), body, answer)
        told = f"it answered {named} {detail}"
        return self.error(kind, told, reported=reported, retry_after=retry_after, headers=passed)

    def from_event(self, error: object, payload: bytes | None = None) -> GatewayError:
        """Return the error for an error object in an answer with status 200; `payload` is its JSON text."""
        given = {"error": error}
        sentence = error_message_in(given) or ""
        reason = classify(given, sentence, _status_in(error))
        if says_overflow(sentence):
            reason = RefusalReason.TOO_LONG
        reported = _reported(reason, parse_reported_failure(given))
        kind = _kind_of_event(error) if reason is None else KINDS_BY_REASON[reason]
        message = self.clean(sentence or "an error without a message")
        named = f" {_name(reason, reported)}" if reason in NAMED_REASONS else ""
        wait = told_wait(NO_HEADERS, given) if reason is RefusalReason.RATE_LIMITED else None
        told = f"it reported{named}: {message}"
        failure = self.error(kind, told, reported=reported, retry_after=wait)
        if not self.is_messages or reason is RefusalReason.KEY or not isinstance(error, Mapping):
            return failure
        inner = error.get("error") if error.get("type") == "error" else error
        status = MESSAGE_STATUSES.get(str(as_mapping(inner).get("type")))
        if payload is None:
            if status is None:
                # It has not the form of the protocol.
                return failure
            payload = orjson.dumps({"type": "error", "error": inner})
        said = self.redacted_text(payload)
        answer = RefusedAnswer(NativeProtocol.ANTHROPIC, status or 500, "application/json", said)
        return NativeRefusalError(failure, answer)

    def clean(self, text: str) -> str:
        """Return a text of the provider as one short line, without keys and control characters."""
        line = self._redact(" ".join(text[:MAX_EXAMINED_CHARACTERS].split()))
        line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)
        return line if len(line) <= MAX_MESSAGE_CHARACTERS else line[: MAX_MESSAGE_CHARACTERS - 1] + "…"

    def redacted(self, data: bytes) -> bytes:
        """Return bytes of an answer with the key removed."""
        for secret in self._secrets:
            data = data.replace(secret.encode(), REDACTED.encode())
        return data

    def redacted_text(self, data: bytes) -> bytes:
        """Return bytes of a refusal with the key and parts of it removed."""
        if not self._secrets:
            return data
        text = data.decode("utf-8", "surrogateescape")
        return self._without_own_key(text).encode("utf-8", "surrogateescape")

    @property
    def _secrets(self) -> tuple[str, ...]:
        return (self.key, *self.secrets) if self.key else self.secrets

    def _unless_secret(self, word: str | None) -> str | None:
        return word if word is not None and self._redact(word) == word else None

    def _redact(self, text: str) -> str:
        return _KEY_LIKE.sub(REDACTED, self._without_own_key(text))

    def _without_own_key(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
            if len(secret) >= 12 and (secret[:6] in text or secret[-6:] in text):
                head, tail = re.escape(secret[:6]), re.escape(secret[-6:])
                text = re.sub(rf"{head}[^\s\"\\]*|\b[\w*.-]{{0,200}}{tail}", REDACTED, text)
        return text

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


def told_wait(headers: Mapping[str, str], answer: object) -> int | None:
    """Return the seconds to wait by a header, or by the error of Gemini."""
    now = ids.now()
    found = parse_retry_after(headers.get("Retry-After"), now)
    if found is None:
        milliseconds = parse_retry_after(headers.get("retry-after-ms"), now)
        found = None if milliseconds is None else math.ceil(milliseconds / 1000)
    if found is None:
        delay = parse_duration(retry_delay_in(answer) or "")
        found = None if delay is None else min(math.ceil(delay), MAX_RETRY_AFTER_SECONDS)
    return found


def _reported(reason: RefusalReason | None, given: ReportedFailure) -> ReportedFailure:
    """Return the code and the parameter for callers; nothing of an error about the key."""
    if reason is None:
        # An error about the key that is none for `classify` has no code.
        return ReportedFailure() if reason_of(given.code) is RefusalReason.KEY else given
    param = None if reason is RefusalReason.KEY else given.param or PARAMS.get(reason)
    return ReportedFailure(told_code(reason, given.code), param)


def _name(reason: RefusalReason | None, reported: ReportedFailure) -> str:
    """Return the words of the sentence for which clients search: the code, of filters the common one."""
    if reason is RefusalReason.TOO_LONG:
        return f"{reported.code}, {LONGER}"
    return reason.value if reason is RefusalReason.FILTERED else reported.code or ""


def _sentence_in(answer: object, body: bytes) -> str:
    if answer is None:
        return body[:MAX_EXAMINED_CHARACTERS].decode("utf-8", "replace")
    return error_message_in(answer) or ""


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


def _status_in(error: object) -> int:
    """Return the HTTP status that an error object in a stream names, 0 for none."""
    for name in ("status", "code"):
        given = error.get(name) if isinstance(error, Mapping) else None
        if isinstance(given, str) and given.isdecimal() and len(given) == 3:
            given = int(given)
        if type(given) is int and 400 <= given < 600:
            return given
    return 0


def _kind_of_event(error: object) -> ErrorKind:
    status = _status_in(error)
    if status:
        return _KINDS_BY_STATUS.get(status, ErrorKind.UPSTREAM_FAILED)
    if isinstance(error, Mapping):
        for name in ("status", "code", "type"):
            word = error.get(name)
            if isinstance(word, str) and word in _KINDS_BY_TYPE:
                return _KINDS_BY_TYPE[word]
    return ErrorKind.UPSTREAM_FAILED
