"""Headers of providers in replies: rate limits in the words of the caller's dialect, and request ids."""

from collections.abc import Mapping

from gatewayd import ids
from gatewayd.completions.rate_limits import RETRY_HINTS, anthropic_headers, openai_headers
from gatewayd.http.body import warning_headers
from gatewayd.http.routes import RouteDialect
from gatewayd.pipeline.records import ChatAnswer


def error_headers(headers: Mapping[str, str], dialect: RouteDialect) -> dict[str, str]:
    """Return the headers of a provider's refusal for a caller of this dialect."""
    if not headers:
        return {}
    convert = anthropic_headers if dialect is RouteDialect.ANTHROPIC else openai_headers
    return convert(headers, ids.now())


def answer_headers(headers: Mapping[str, str], dialect: RouteDialect) -> dict[str, str]:
    """Return the headers of a provider's answer for a caller of this dialect, without hints for retries."""
    if not headers:
        return {}
    told = error_headers(headers, dialect)
    for name in RETRY_HINTS:
        told.pop(name, None)
    return told


def reply_headers(answer: ChatAnswer, dialect: RouteDialect) -> dict[str, str]:
    """Return the headers of the reply to a chat: its warnings, and those of the provider."""
    headers = warning_headers(answer.warnings)
    return {**headers, **answer_headers(answer.headers, dialect)} if answer.headers else headers
