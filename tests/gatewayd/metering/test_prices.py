"""Prices: of the settings, of what a provider lists, and of the table; an unknown one is never zero."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gatewayd.dialects.providers.family import canonical_name
from gatewayd.metering.price_tables import PRICES_DATE
from gatewayd.metering.prices import (
    MAX_CALL_COST,
    ModelPrice,
    PriceRule,
    PriceTable,
    common_prices,
    listed_price,
    nano_price,
)
from gatewayd.metering.records import MAX_TOKENS, MeteredCall, TokenUsage

LISTED = {"openai": {"pricing": {"prompt": "0.0000025", "completion": 0.00001, "request": "0.01"}}}


def a_call(
    model: str, maker: str = "", source: str = "p", details: dict[str, Any] | None = None
) -> MeteredCall:
    call = MeteredCall("u", (), "", f"x.{model}", "chat", source=source, upstream_model=model, attempts=1)
    call.maker, call.details = maker, details or {}
    return call


def test_parts_of_the_prompt_have_their_own_price() -> None:
    price = ModelPrice(nano_price(3), nano_price(15), nano_price(0.3), nano_price("3.75"))
    assert price.cost(TokenUsage(1_000_000, 400_000, 100_000, 10_000)) == 2_145_000_000
    assert ModelPrice(2_500_000_000, 0).cost(TokenUsage(1)) == 2500
    assert ModelPrice(1_500_000, 0).cost(TokenUsage(1)) == 2
    assert ModelPrice(2**70, 2**70).cost(TokenUsage(MAX_TOKENS, 0, 0, MAX_TOKENS)) == MAX_CALL_COST


@pytest.mark.parametrize(
    ("call", "origin"),
    [
        (a_call("claude-sonnet-4-5-20250929", "anthropic"), "table"),
        (a_call("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"), "table"),
        (a_call("gpt-4o-2024-08-06", "azure"), "table"),
        (a_call("gpt-4o", "openai", details=LISTED), "provider"),
        (a_call("gpt-4o", "openai", "cheap", LISTED), "settings"),
        # A fine-tuned model, one of an engine that people run, and one that nobody knows.
        (a_call("ft:gpt-4o:acme::1", "openai"), ""),
        (a_call("gpt-4o"), ""),
        (a_call("gpt-unheard-of", "openai"), ""),
    ],
)
def test_a_price_is_found(call: MeteredCall, origin: str) -> None:
    table = PriceTable([PriceRule("cheap", "gpt-4*", ModelPrice(0, 0))], canonical_name)
    assert table.find(call).origin == origin
    cost = table.cost(call, TokenUsage(1000))
    assert (cost is None) == (not origin)
    assert (cost == 0) == (origin == "settings")


def test_changed_settings_and_lists_change_the_price() -> None:
    table, call = PriceTable(), a_call("m")
    assert table.cost(call, TokenUsage(10)) is None
    table.configure([PriceRule("", "x.m", ModelPrice(MAX_TOKENS, 0))])
    assert table.cost(call, TokenUsage(1_000_000)) == MAX_TOKENS
    table.configure([])
    call.details = LISTED
    assert table.cost(call, TokenUsage(1000)) == 12_500_000
    call.attempts = 0
    assert table.cost(call, TokenUsage(1000)) == 12_500_000
    assert table.cost(call, TokenUsage()) == 0


@pytest.mark.parametrize(
    "pricing",
    [
        None,
        {},
        {"prompt": "0.1"},
        {"prompt": "-1", "completion": "-1"},
        {"prompt": "NaN", "completion": "1e-6"},
        {"prompt": "1e999999999", "completion": "1e-6"},
        {"prompt": "1" * 100, "completion": "0"},
        {"prompt": True, "completion": 0},
        {"prompt": "free", "completion": "0"},
        {"prompt": [], "completion": {}},
    ],
)
def test_a_hostile_list_has_no_price(pricing: object) -> None:
    assert listed_price({"openai": {"pricing": pricing}}) is None


def test_the_table_is_whole() -> None:
    prices = common_prices()
    assert len(prices) > 150
    assert all(name == canonical_name(name) for _, name in prices)
    assert all(price.prompt >= (price.cached or 0) for price in prices.values())


def test_the_page_names_the_month_of_the_table() -> None:
    page = (Path(__file__).parents[3] / "man" / "gatewayd-operations.7").read_text()
    month = datetime.strptime(PRICES_DATE, "%Y-%m").replace(tzinfo=UTC)
    assert f"in the gateway, of {month:%B %Y}" in page
