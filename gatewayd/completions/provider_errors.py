"""Parses the machine-readable part of provider errors: the code and the bad parameter; pure."""

import re
from typing import Final, NamedTuple

from gatewayd.completions.refusal_reasons import (
    CODES,
    EXACT_CODES,
    MAX_EXAMINED_SENTENCE,
    RefusalReason,
    errors_in,
)

OVERFLOW: Final = RefusalReason.TOO_LONG.value
"""Code for a request that exceeds the context window; clients react to it by shortening the request."""

QUOTA: Final = RefusalReason.NO_CREDIT.value
"""Code for an account without credit; a retry is useless."""

OVERFLOW_SENTENCES: Final = (
    "prompt is too long",
    "input is too long for requested model",
    "exceeds the context window",
    "exceeds the maximum number of tokens",
    "input token count",
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
_OVERFLOW_CODES: Final = CODES[RefusalReason.TOO_LONG]
QUOTA_CODES: Final = CODES[RefusalReason.NO_CREDIT] & EXACT_CODES
"""Codes of a provider that say that the credit is used up."""
_KEY_CODES: Final = CODES[RefusalReason.KEY]


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
    for error in errors_in(answer):
        code = code or _word(_CODE, error.get("code"))
        param = param or _word(_PARAM, error.get("param"))
        kind = _word(_CODE, error.get("type"))
        if kind in _OVERFLOW_CODES or (kind in QUOTA_CODES and code not in QUOTA_CODES):
            code = kind
    if (code is not None and code.lower() in _OVERFLOW_CODES) or says_overflow(sentence):
        return ReportedFailure(OVERFLOW, param or "messages")
    if code is not None and code.lower() in _KEY_CODES:
        return ReportedFailure()
    return ReportedFailure(code, param)


def says_overflow(sentence: str) -> bool:
    """Return True if a provider's sentence says that the request exceeds the context window."""
    text = sentence[:MAX_EXAMINED_SENTENCE].lower()
    return any(known in text for known in OVERFLOW_SENTENCES)


def _word(pattern: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None
