"""Why a provider refuses a request: one classification for the errors of all makers; pure.

Known are the error objects of OpenAI, Azure, Anthropic, Gemini, Mistral, Bedrock and of local engines, whole
or in a stream. The code, the type and the status of a body win over the HTTP status, because proxies put a
rate limit into a 400 or 500. Sentences count only where a provider has no code for the case.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence

MAX_EXAMINED_SENTENCE: Final = 2000
"""Maximum number of characters of a sentence that are searched."""

MAX_DETAILS: Final = 20
"""Maximum number of details of an error that are read."""


class RefusalReason(StrEnum):
    """A reason that programs act on; the value is its code in the OpenAI dialect."""

    # The request exceeds the context window: shorten it.
    TOO_LONG = "context_length_exceeded"
    # The gateway's account has no credit: a retry is useless.
    NO_CREDIT = "insufficient_quota"
    # A filter of the provider refuses the content.
    FILTERED = "content_policy_violation"
    # The provider has no capacity: wait, or ask another one.
    OVERLOADED = "server_is_overloaded"
    # The provider has no such model.
    UNKNOWN_MODEL = "model_not_found"
    # Too many requests: wait.
    RATE_LIMITED = "rate_limit_exceeded"
    # The provider refuses the key of the gateway, which is not the caller's.
    KEY = "provider_auth"


CODES: Final[Mapping[RefusalReason, frozenset[str]]] = {
    RefusalReason.TOO_LONG: frozenset(
        {
            *("context_length_exceeded", "context_window_exceeded", "exceed_context_size_error"),
            *("model_context_window_exceeded", "prompt_too_long"),
        }
    ),
    RefusalReason.NO_CREDIT: frozenset(
        {
            *("insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded"),
            *("organization_usage_limit_exceeded", "project_spend_limit_exceeded"),
            *("billing_error", "billing_hard_limit_reached", "billing_not_active"),
            *("enforced_spend_limit_reached", "insufficient_balance", "insufficient_credits"),
            *("exceeded_current_quota_error", "arrearage", "payment_required"),
        }
    ),
    RefusalReason.FILTERED: frozenset(
        {
            *("content_policy_violation", "content_filter", "responsibleaipolicyviolation"),
            *("cyber_policy", "bio_policy", "data_inspection_failed", "moderation_blocked"),
            "prohibited_content",
        }
    ),
    RefusalReason.UNKNOWN_MODEL: frozenset({"model_not_found", "deploymentnotfound", "modelnotfound"}),
    RefusalReason.KEY: frozenset(
        {
            *("api_key_invalid", "authentication_error", "forbidden", "invalid_api_key", "permission_error"),
            *("invalid_authentication", "invalid_authentication_error", "unauthenticated", "unauthorized"),
            *("permission_denied", "accessdeniedexception", "unrecognizedclientexception"),
            "provider_auth",
        }
    ),
    RefusalReason.OVERLOADED: frozenset(
        {
            *("server_is_overloaded", "overloaded_error", "service_unavailable_error", "unavailable"),
            *("engine_overloaded_error", "serviceunavailableexception", "modelnotreadyexception"),
        }
    ),
    RefusalReason.RATE_LIMITED: frozenset(
        {
            *("rate_limit_exceeded", "rate_limit_error", "slow_down", "resource_exhausted"),
            *("throttlingexception", "too_many_requests", "rate_limit_reached_error", "429"),
        }
    ),
}
"""Codes, types and status words of each reason in lower case; the first reason that matches counts."""

EXACT_CODES: Final = frozenset(
    {
        *("insufficient_quota", "credit_balance_exhausted", "organization_spend_limit_exceeded"),
        *("organization_usage_limit_exceeded", "project_spend_limit_exceeded"),
        *("content_policy_violation", "content_filter", "cyber_policy", "bio_policy"),
        *("rate_limit_exceeded", "slow_down"),
    }
)
"""Codes of providers that callers get unchanged, because clients know them; others become the reason's."""

HOPELESS: Final = frozenset({RefusalReason.NO_CREDIT, RefusalReason.KEY})
"""Reasons after which the same request fails again, although clients retry their statuses."""

_REASONS: Final = {code: reason for reason, codes in CODES.items() for code in codes} | {
    reason.value: reason for reason in RefusalReason
}

_SENTENCES: Final[Sequence[tuple[RefusalReason, frozenset[int], tuple[str, ...]]]] = (
    (
        RefusalReason.NO_CREDIT,
        frozenset({0, 400, 402, 403, 429}),
        (
            *("credit balance is too low", "insufficient balance", "insufficient credits"),
            *("billing hard limit", "exceeded your current quota", "account is in arrears"),
            *("used all available credits", "have any credits yet"),
        ),
    ),
    (
        RefusalReason.FILTERED,
        frozenset({0, 400, 403, 422}),
        (
            *("content management policy", "violates our content policy", "our safety system"),
            *("content violates usage guidelines", "violates our usage policies"),
            *("inappropriate content", "was blocked by our content filter"),
        ),
    ),
)
"""Fragments of sentences in lower case, with the statuses whose sentences are searched; 0 is a stream."""

_KEY_CODES: Final = (CODES[RefusalReason.KEY] | CODES[RefusalReason.NO_CREDIT]) - {
    "forbidden",
    "provider_auth",
}
"""Codes of a 403 that rest a key; the one that says only 403 once more does not."""

_KEY_WORDS: Final = re.compile(
    r"\b(?:api|access|secret|subscription)[ _-]?(?:key|token)s?\b|\bkeys?\b.{0,60}\b(?:invalid|not valid|"
    r"expired|revoked|disabled|blocked|permission|access)|\binvalid (?:key|token|credential)|credentials?\b"
    r"|\b(?:un)?authenticat|\bunauthori[sz]ed\b|\b(?:have|has|lacks?|without|no) (?:the )?permissions?\b"
    r"|\b(?:account|project|organi[sz]ation|team)\b.{0,60}\b(?:disabled|suspended|deactivated|blocked|arrears)"
    r"|credit|\bbalance\b|\bbilling\b|\bquota\b"
)
_CONTENT: Final = re.compile(
    r"\bcontent\b|\bprompt\b|usage (?:guidelines|polic)|\bpolicy\b|\bsafety\b|moderat|\bflagged\b|harmful"
)
"""Words of a refusal of what was asked."""

_UNSURE: Final = frozenset({RefusalReason.RATE_LIMITED, RefusalReason.KEY})
"""Reasons by codes that some providers also give for an exact reason, which only the sentence tells."""

_STATUSES: Final[Mapping[int, RefusalReason]] = {
    401: RefusalReason.KEY,
    402: RefusalReason.NO_CREDIT,
    403: RefusalReason.KEY,
    429: RefusalReason.RATE_LIMITED,
    529: RefusalReason.OVERLOADED,
}

_NO_SUCH_MODEL: Final = re.compile(
    r"^model: |\bmodels?\b.{0,200}\b(?:not found|does not exist|not exist|unknown)\b"
    r"|\b(?:unknown|no such) model\b"
)

_LONG_QUOTA: Final = re.compile(r"per_?(?:day|week|month)", re.IGNORECASE)
_SHORT_QUOTA: Final = re.compile(r"per_?(?:second|minute|hour)", re.IGNORECASE)
"""Windows in names of quotas, such as GenerateRequestsPerDayPerProjectPerModel."""

_NO_QUOTA: Final = re.compile(r"\bquota exceeded for metric: [^\n]{1,200}, limit: 0(?:,|$)", re.MULTILINE)
"""A model that the plan does not contain; each line of the sentence names one quota."""

_RETRY_IN: Final = re.compile(r"\bPlease retry in ([0-9.hms]{2,20}s)\b")
"""How the sentence of Gemini repeats its delay, `2h3m4.5s`; a reply may have no other."""

_WORD_FIELDS: Final = ("code", "type", "status", "reason", "__type")


def classify(answer: object, sentence: str, status: int = 0) -> RefusalReason | None:
    """Return the reason of a refusal, None for any other error.

    `answer` is the decoded body, `sentence` its message, `status` the HTTP status, 0 for an error in a
    stream. A too long request that only its sentence shows is found by `provider_errors`.
    """
    words = frozenset(_words(answer))
    text = sentence[:MAX_EXAMINED_SENTENCE].lower()
    if "resource_exhausted" in words and _is_spent(answer, text):
        return RefusalReason.NO_CREDIT
    found = next((reason for reason, codes in CODES.items() if not codes.isdisjoint(words)), None)
    if found is None or found in _UNSURE:
        said = _by_sentence(text, status)
        if said is not None and not (said is RefusalReason.NO_CREDIT and "resource_exhausted" in words):
            return said
    if found is not None:
        return found
    return _STATUSES.get(status)


def names_key(answer: object, sentence: str) -> bool:
    """Return True if a refusal with 403 says that the key is bad, or may not do this.

    Any other 403 is about the request: some providers refuse content without a code, or with one of rights.
    """
    text = sentence[:MAX_EXAMINED_SENTENCE].lower()
    words = frozenset(_words(answer))
    if not CODES[RefusalReason.FILTERED].isdisjoint(words) or _CONTENT.search(text):
        return False
    return not _KEY_CODES.isdisjoint(words) or _KEY_WORDS.search(text) is not None


def reason_of(code: str | None) -> RefusalReason | None:
    """Return the reason that a code of a provider means, None for any other code."""
    return None if code is None else _REASONS.get(code.lower())


def told_code(reason: RefusalReason, code: str | None) -> str:
    """Return the code that callers get: the provider's own if clients know it, else that of the reason."""
    if code is not None and code in EXACT_CODES and reason_of(code) is reason:
        return code
    return reason.value


def _by_sentence(text: str, status: int) -> RefusalReason | None:
    for reason, statuses, fragments in _SENTENCES:
        if status in statuses and any(fragment in text for fragment in fragments):
            return reason
    return RefusalReason.UNKNOWN_MODEL if status == 404 and _NO_SUCH_MODEL.search(text) else None


def _words(answer: object) -> Iterator[str]:
    for error in errors_in(answer):
        yield from _words_of(error)
        yield from _words_of(as_mapping(error.get("innererror")))
        details = error.get("details")
        yield from _words_of({"code": as_mapping(details).get("error_code")})
        for detail in as_sequence(details)[:MAX_DETAILS]:
            yield from _words_of(as_mapping(detail))


def _words_of(error: Mapping[str, Any]) -> Iterator[str]:
    for name in _WORD_FIELDS:
        value = error.get(name)
        if isinstance(value, str):
            yield value[:100].lower()
        elif value == 429 and not isinstance(value, bool):
            yield "429"


def _is_spent(answer: object, text: str) -> bool:
    """Return True if Gemini reports a quota that no short wait refills: one of a day, or one of nothing.

    Such a report has a short delay, too, after which a retry fails again. `text` is its sentence in lower
    case, which tells the quota where a report has no details.
    """
    violations = list(_violations(answer))
    names = [str(each.get(name, ""))[:200] for each in violations for name in ("quotaId", "quotaMetric")]
    if any(_LONG_QUOTA.search(name) for name in names) or any(
        each.get("quotaValue") == "0" for each in violations
    ):
        return True
    if not violations:
        return _LONG_QUOTA.search(text) is not None or _NO_QUOTA.search(text) is not None
    return retry_delay_in(answer) is None and not any(_SHORT_QUOTA.search(name) for name in names)


def _violations(answer: object) -> Iterator[Mapping[str, Any]]:
    for error in errors_in(answer):
        for detail in as_sequence(error.get("details"))[:MAX_DETAILS]:
            yield from map(as_mapping, as_sequence(as_mapping(detail).get("violations"))[:MAX_DETAILS])


def retry_delay_in(answer: object) -> str | None:
    """Return the duration in a Gemini error after which a retry makes sense, such as `12s`."""
    for error in errors_in(answer):
        for item in as_sequence(error.get("details"))[:MAX_DETAILS]:
            delay = as_mapping(item).get("retryDelay")
            if isinstance(delay, str):
                return delay[:40]
    for error in errors_in(answer):
        sentence = error.get("message")
        if isinstance(sentence, str) and (found := _RETRY_IN.search(sentence[:MAX_EXAMINED_SENTENCE])):
            return found[1]
    return None


def errors_in(answer: object) -> Iterator[Mapping[str, Any]]:
    """Return the error object of a reply and the objects around it, the innermost first."""
    if isinstance(answer, list):
        answer = answer[0] if answer else None
    outer = as_mapping(answer)
    inner = as_mapping(outer.get("error"))
    yield from (item for item in (as_mapping(inner.get("error")), inner, outer) if item)
