"""Estimates of the tokens of a call: before it for reservations, after it if no provider told them; pure."""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.metering.records import NO_USAGE, CallOutcome, MeteredCall, TokenUsage

ASCII_PER_TOKEN: Final = 4
BYTES_PER_TOKEN: Final = 3
PICTURE_TOKENS: Final = 1_600
"""Tokens of a file within a request, given as a data URL."""

ANSWER_TOKENS: Final = 1_024
"""Expected tokens of an answer whose request names no maximum."""

MAX_ESTIMATE_VALUES: Final = 20_000
"""Maximum number of values of a request that are looked at."""

TEXT_FIELDS: Final = ("messages", "input", "prompt", "system", "instructions", "tools", "documents", "query")
"""Fields of requests whose values a model reads."""

LIMIT_FIELDS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
"""Fields with the maximum tokens of an answer."""


def estimate_call(call: MeteredCall) -> TokenUsage:
    """Return the tokens that a call is expected to take, by its request."""
    body = call.body or {}
    limits = (body.get(name) for name in LIMIT_FIELDS)
    completion = next((value for value in limits if type(value) is int and value > 0), ANSWER_TOKENS)
    return TokenUsage(prompt=prompt_tokens(body), completion=completion)


def estimate_end(call: MeteredCall) -> TokenUsage:
    """Return the tokens of a call that ended without usage.

    The prompt counts if the source has answered, or was asked and may have read it; the answer counts by the
    length of its texts.
    """
    if not call.attempts or call.outcome in (CallOutcome.REFUSED, CallOutcome.FAILED):
        return NO_USAGE
    return TokenUsage(
        prompt=prompt_tokens(call.body or {}), completion=-(-call.characters // ASCII_PER_TOKEN)
    )


def prompt_tokens(body: Mapping[str, Any]) -> int:
    """Return the estimate of what a model reads of a request, of any dialect; never raises."""
    stack: list[object] = [body[name] for name in TEXT_FIELDS if name in body]
    tokens, looked = 0, 0
    while stack and looked < MAX_ESTIMATE_VALUES:
        item = stack.pop()
        looked += 1
        if isinstance(item, str):
            tokens += text_length_tokens(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            if item and type(item[0]) is int:
                tokens += len(item)
            else:
                stack.extend(item[:MAX_ESTIMATE_VALUES])
    return tokens


def text_length_tokens(text: str) -> int:
    """Return the estimate for a text: four ASCII characters are a token, or three bytes of other texts."""
    if text.startswith("data:"):
        return PICTURE_TOKENS
    if text.isascii():
        return -(-len(text) // ASCII_PER_TOKEN)
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
