"""Refusals of calls by limits, and the headers that tell what is left; pure."""

import math
from collections.abc import Mapping
from typing import Final

from gatewayd.completions.rate_limits import OPENAI_LIMITS, format_duration
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.limits.amounts import format_amount
from gatewayd.limits.records import BudgetRefusal, RatePot, RateQuantity, RateRefusal, RateUse

NO_RETRY: Final[Mapping[str, str]] = {"x-should-retry": "false"}
"""Tells the client libraries not to repeat a request."""

BUDGET_CODE: Final = "insufficient_quota"
"""Code of an exhausted budget: that of OpenAI, on which programs act."""

RATE_CODE: Final = "rate_limit_exceeded"
LARGE_CODE: Final = "request_too_large"
PRICE_CODE: Final = "price_unknown"

HELD_SECONDS: Final = 2
"""Wait that a refusal names if the calls in flight hold what is left of a budget."""

MAX_RETRIED_SECONDS: Final = 60
"""Maximum wait after which a program may repeat a request by itself."""

_RATE_WORDS: Final = {
    RateQuantity.REQUESTS: "requests a minute",
    RateQuantity.TOKENS: "tokens a minute",
    RateQuantity.PARALLEL: "calls at a time",
}


def rate_error(refusal: RateRefusal, use: RateUse) -> GatewayError:
    """Return the error of a call that a pot cannot take now."""
    pot, quantity = refusal.pot, refusal.quantity
    limit = {
        RateQuantity.REQUESTS: pot.requests,
        RateQuantity.TOKENS: pot.tokens,
        RateQuantity.PARALLEL: pot.parallel,
    }[quantity]
    return GatewayError(
        ErrorKind.RATE_LIMITED,
        f"cannot call the model: the limit of {limit} {_RATE_WORDS[quantity]} of {pot.owner} is reached",
        code=RATE_CODE,
        retry_after=max(1, math.ceil(refusal.seconds)),
        headers=pot_headers(pot, use),
    )


def large_error(pot: RatePot, tokens: int) -> GatewayError:
    """Return the error of a call whose prompt alone is above the limit of a minute."""
    return GatewayError(
        ErrorKind.RATE_LIMITED,
        f"cannot call the model: the request has about {tokens} tokens, more than the limit of {pot.tokens}"
        f" tokens a minute of {pot.owner}",
        code=LARGE_CODE,
        headers=NO_RETRY,
    )


def budget_error(refusal: BudgetRefusal, now: int) -> GatewayError:
    """Return the error of a call that a budget cannot take; `now` is in epoch seconds."""
    demand, use = refusal.demand, refusal.use
    key = demand.key
    limit = f"the budget of {format_amount(demand.most, key.unit)} a {key.period} of {demand.owner}"
    if use.used - use.reserved + demand.amount <= demand.most:
        return GatewayError(
            ErrorKind.RATE_LIMITED,
            f"cannot call the model: calls in flight hold what is left of {limit}",
            code=RATE_CODE,
            retry_after=HELD_SECONDS,
        )
    seconds = max(1, key.ends_at - now)
    used = format_amount(use.used, key.unit)
    return GatewayError(
        ErrorKind.RATE_LIMITED,
        f"cannot call the model: {limit} is exhausted: {used} are used",
        code=BUDGET_CODE,
        retry_after=seconds,
        headers=NO_RETRY if seconds > MAX_RETRIED_SECONDS else {},
    )


def price_error(model: str, owner: str) -> GatewayError:
    """Return the error of a call under a budget in money whose price nobody knows."""
    return GatewayError(
        ErrorKind.FORBIDDEN,
        f"cannot call the model {model!r}: its price is unknown, and {owner} has a budget in money",
        param="model",
        code=PRICE_CODE,
    )


def pot_headers(pot: RatePot, use: RateUse) -> dict[str, str]:
    """Return the headers for the limits of a pot, with the names of OpenAI."""
    headers: dict[str, str] = {}
    if pot.requests is not None:
        headers |= quantity_headers("requests", pot.requests, use.requests, use.requests_reset)
    if pot.tokens is not None:
        headers |= quantity_headers("tokens", pot.tokens, use.tokens, use.tokens_reset)
    return headers


def quantity_headers(quantity: str, limit: int, used: int, reset: float) -> dict[str, str]:
    """Return the headers of the limit of `requests` or `tokens`; `reset` is in seconds."""
    return {
        f"{OPENAI_LIMITS}limit-{quantity}": str(limit),
        f"{OPENAI_LIMITS}remaining-{quantity}": str(max(0, limit - used)),
        f"{OPENAI_LIMITS}reset-{quantity}": format_duration(reset) or "0ms",
    }
