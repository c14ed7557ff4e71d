"""Prices of models: those of the settings, those that a provider lists, and a table of common models.

Prices are whole nano-dollars for a million tokens, so that sums are exact. A price that nobody tells is
unknown, and never zero.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

from gatewayd.metering.price_tables import PRICES
from gatewayd.metering.records import MeteredCall, TokenUsage

NANO: Final = 1_000_000_000
MILLION: Final = 1_000_000

MAX_CALL_COST: Final = 2**40
"""Maximum cost of a call in nano-dollars, about 1,100 dollars."""

MAX_PRICE: Final = Decimal(100_000)
"""Maximum price in dollars for a million tokens that is believed."""

MAX_KNOWN_PRICES: Final = 10_000
"""Maximum number of models whose price is remembered."""

SAME_PRICES: Final = {"azure": ("openai",), "bedrock": ("anthropic",), "vertex": ("gemini", "anthropic")}
"""Makers of the tables whose models other services sell at their prices."""


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """Nano-dollars for a million tokens, and for each request; None stands for the price of the prompt."""

    prompt: int
    completion: int
    cached: int | None = None
    cache_written: int | None = None
    request: int = 0

    def cost(self, usage: TokenUsage) -> int:
        """Return the cost of a call in nano-dollars, rounded to the nearest."""
        cached = self.prompt if self.cached is None else self.cached
        written = self.prompt if self.cache_written is None else self.cache_written
        sent, read, stored, received, _ = usage
        fresh = sent - read - stored
        tokens = (fresh if fresh > 0 else 0) * self.prompt + read * cached + stored * written
        cost = self.request + (tokens + received * self.completion + MILLION // 2) // MILLION
        return cost if cost < MAX_CALL_COST else MAX_CALL_COST


@dataclass(frozen=True, slots=True)
class PriceRule:
    """A price of the settings: for a provider ("" for any) and a pattern of ids or canonical names."""

    provider: str
    model: str
    price: ModelPrice


@dataclass(frozen=True, slots=True)
class FoundPrice:
    """The price of a model, and where it was found: settings, provider or table; None for an unknown one."""

    price: ModelPrice | None
    origin: str = ""


class PriceTable:
    """Finds prices: the first rule of the settings that fits, then the provider's own, then the table."""

    def __init__(self, rules: Sequence[PriceRule] = (), canonical: Callable[[str], str] = str) -> None:
        self._rules = tuple(rules)
        self._canonical = canonical
        self._known: dict[tuple[str, str], tuple[object, FoundPrice]] = {}

    def configure(self, rules: Sequence[PriceRule]) -> None:
        """Use other rules from now on."""
        self._rules = tuple(rules)
        self._known.clear()

    def cost(self, call: MeteredCall, usage: TokenUsage) -> int | None:
        """Return the cost of a call in nano-dollars, None for an unknown price; 0 if nothing was sent."""
        if not call.attempts and not usage.total:
            return 0
        known = self._known.get((call.source, call.upstream_model))
        found = known[1] if known is not None and known[0] is call.details else self.find(call)
        price = found.price
        if price is None:
            return None
        return price.cost(usage)

    def find(self, call: MeteredCall) -> FoundPrice:
        """Return the price of the model of a call."""
        key = (call.source, call.upstream_model)
        known = self._known.get(key)
        if known is not None and known[0] is call.details:
            return known[1]
        found = self._find(call)
        if len(self._known) >= MAX_KNOWN_PRICES:
            self._known.clear()
        self._known[key] = (call.details, found)
        return found

    def _find(self, call: MeteredCall) -> FoundPrice:
        name = self._canonical(call.family or call.upstream_model)
        for rule in self._rules:
            if rule.provider in ("", call.source) and any(
                fnmatchcase(each, rule.model) for each in (name, call.upstream_model, call.model)
            ):
                return FoundPrice(rule.price, "settings")
        listed = listed_price(call.details or {})
        if listed is not None:
            return FoundPrice(listed, "provider")
        if call.upstream_model.startswith("ft:"):
            return FoundPrice(None)
        for maker in SAME_PRICES.get(call.maker, (call.maker,)):
            price = common_prices().get((maker, name))
            if price is not None:
                return FoundPrice(price, "table")
        return FoundPrice(None)


@cache
def common_prices() -> Mapping[tuple[str, str], ModelPrice]:
    """Return the prices of the table by maker and canonical name."""
    found = {}
    for maker, table in PRICES.items():
        for line in table.split("\n"):
            if line:
                name, prompt, cached, written, answer = line.split()
                found[maker, name] = ModelPrice(
                    nano_price(prompt),
                    nano_price(answer),
                    None if cached == "-" else nano_price(cached),
                    None if written == "-" else nano_price(written),
                )
    return found


def nano_price(dollars: Decimal | float | str) -> int:
    """Return dollars as nano-dollars, rounded to the nearest."""
    return int((Decimal(str(dollars)) * NANO).to_integral_value())


def listed_price(details: Mapping[str, Any]) -> ModelPrice | None:
    """Return the price in what a provider lists of a model, in dollars for one token as OpenRouter does."""
    listed = details.get("openai")
    pricing = listed.get("pricing") if isinstance(listed, Mapping) else None
    if not isinstance(pricing, Mapping):
        return None
    prompt, completion = (_token_price(pricing.get(name)) for name in ("prompt", "completion"))
    if prompt is None or completion is None:
        return None
    request = _token_price(pricing.get("request"))
    return ModelPrice(
        prompt,
        completion,
        _token_price(pricing.get("input_cache_read")),
        _token_price(pricing.get("input_cache_write")),
        0 if request is None else min(MAX_CALL_COST, request // MILLION),
    )


def _token_price(value: object) -> int | None:
    """Return dollars for one token as nano-dollars for a million; None for no price, or an absurd one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(str(value)) > 64:
        return None
    try:
        price = Decimal(str(value)) * MILLION
    except ArithmeticError:
        return None
    return nano_price(price) if price.is_finite() and 0 <= price <= MAX_PRICE else None
