"""Parses the machine-readable part of provider errors: the code and the bad parameter; pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from gatewayd.completions.json_access import as_mapping

OVERFLOW: Final = "context_length_exceeded"
"""Code for a request that exceeds the context window; clients react to it by shortening the request."""

QUOTA: Final = "insufficient_quota"
"""Code for an account without credit; a retry is useless."""

QUOTA_CODES: Final = frozenset(
    {
        QUOTA,
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_spend_limit_exceeded",
    }
)
"""Provider codes that mean `insufficient_quota`."""

OVERFLOW_CODES: Final = frozenset(
    {OVERFLOW, "context_window_exceeded", "exceed_context_size_error", "model_context_window_exceeded"}
)
"""Provider codes that mean `context_length_exceeded`."""

KEY_CODES: Final = frozenset(
    {"api_key_invalid", "authentication_error", "forbidden", "invalid_api_key", "permission_error"}
    | {"invalid_authentication", "unauthenticated", "unauthorized"}
)
"""Provider codes about the gateway's own key; callers never see them."""

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
"""Fragments of error sentences, in lower case, by which providers without codes report a too long request."""

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
_PARAM: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_.$\[\]-]{0,127}")
_MAX_SENTENCE: Final = 2000


class ReportedFailure(NamedTuple):
    """Code and parameter of a provider error; None if the provider gives none."""

    code: str | None = None
    param: str | None = None


def parse_reported_failure(answer: object, sentence: str = "") -> ReportedFailure:
    """Return the code and the bad parameter of an error reply; `sentence` is its message.

    Codes are words of at most 64 characters, parameters paths of at most 128. Numbers and codes about a key
    count as absent. A request that exceeds the context window gets the code `OVERFLOW` for every provider.
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
    """Return True if a provider's sentence says that the request exceeds the context window."""
    text = sentence[:_MAX_SENTENCE].lower()
    return any(known in text for known in OVERFLOW_SENTENCES)


def _errors_in(answer: object) -> Iterator[Mapping[str, Any]]:
    """Return the error object of a reply and the objects around it."""
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    outer = as_mapping(answer)
    inner = as_mapping(outer.get("error"))
    yield from (item for item in (as_mapping(inner.get("error")), inner, outer) if item)


def _word(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None
