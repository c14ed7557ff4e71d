"""Reads what a provider reports of a failure for programs: its code and the field at fault; pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatewayd.completions.json_access import as_mapping

OVERFLOW: Final = "context_length_exceeded"
"""The code of a request that is longer than its model can take, by which clients shorten it."""

QUOTA: Final = "insufficient_quota"
"""The code of an account without money: asking again is of no use."""

QUOTA_CODES: Final = frozenset(
    {
        QUOTA,
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    }
)
"""The codes of an account without money."""

OVERFLOW_CODES: Final = frozenset(
    {OVERFLOW, "context_window_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}
)
"""How providers call a request that is too long."""

KEY_CODES: Final = frozenset(
    {"api_key_invalid", "authentication_error", "forbidden", "invalid_api_key", "permission_error"}
    | {"invalid_authentication", "unauthenticated", "unauthorized"}
)
"""Codes about the gateway's own key, which are no concern of the caller's."""

OVERFLOW_SENTENCES: Final = (
    "prompt is too long",
    "input is too long for requested model",
    "exceeds the context window",
    "exceeds the maximum number of tokens",
    "maximum context length",
    "maximum prompt length is",
    "reduce the length of the messages",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "too large for model with",
    "range of input length",
    "exceed context limit",
    "exceeds context length",
    "longer than the model's context length",
    "input tokens exceed the configured limit",
    "`inputs` tokens + `max_new_tokens`",
)
"""What providers without a code say of a request that is too long, in lower case."""

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_PARAM: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$\[\]-]{0,127}")
_MAX_SENTENCE: Final = 2000


class ReportedFailure(NamedTuple):
    """What a provider reports of a failure, None where it does not."""

    code: str | None = None
    param: str | None = None


def parse_reported_failure(answer: object, sentence: str = "") -> ReportedFailure:
    """Return the code and the field at fault in an error answer; `sentence` is what it says.

    Codes are words of at most 64 characters, fields paths of at most 128; numbers count as absent, and so do
    codes about a key. A request that is too long has the code `OVERFLOW` from every provider.
    """
    code = param = None
    for error in _errors_in(answer):
        code = code or _word(_CODE, error.get("code"))
        param = param or _word(_PARAM, error.get("param"))
        kind = _word(_CODE, error.get("type"))
        if kind in OVERFLOW_CODES or (kind in QUOTA_CODES and code not in QUOTA_CODES):
            code = kind
    if (code is not None and code.lower() in OVERFLOW_CODES) or says_overflow(sentence):
        return ReportedFailure(OVERFLOW, param or "messages")
    if code is not None and code.lower() in KEY_CODES:
        return ReportedFailure()
    return ReportedFailure(code, param)


def says_overflow(sentence: str) -> bool:
    """Whether a provider's sentence says that the request is longer than its model can take."""
    said = sentence[:_MAX_SENTENCE].lower()
    return any(known in said for known in OVERFLOW_SENTENCES)


def _errors_in(answer: object) -> Iterator[Mapping[str, Any]]:
    """Return the error object of an answer, and what stands around it."""
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    outer = as_mapping(answer)
    inner = as_mapping(outer.get("error"))
    yield from (item for item in (as_mapping(inner.get("error")), inner, outer) if item)


def _word(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None
