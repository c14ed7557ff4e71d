"""Tests for gatewayd.limits.amounts."""

import pytest

from gatewayd.errors import GatewayError
from gatewayd.limits.amounts import MAX_AMOUNT, format_amount, format_budget, parse_budget, parse_budgets
from gatewayd.limits.periods import BudgetPeriod
from gatewayd.limits.records import BudgetRule, BudgetUnit


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("10usd/month", BudgetRule(10 * 10**9, BudgetUnit.USD, BudgetPeriod.MONTH)),
        ("0.000000001usd/day", BudgetRule(1, BudgetUnit.USD, BudgetPeriod.DAY)),
        ("2.5usd/week", BudgetRule(2_500_000_000, BudgetUnit.USD, BudgetPeriod.WEEK)),
        ("1000000tokens/day", BudgetRule(1_000_000, BudgetUnit.TOKENS, BudgetPeriod.DAY)),
        (f"{MAX_AMOUNT // 10}tokens/day", BudgetRule(MAX_AMOUNT // 10, BudgetUnit.TOKENS, BudgetPeriod.DAY)),
    ],
)
def test_a_budget_is_read_and_written(text: str, budget: BudgetRule) -> None:
    assert parse_budget(text) == budget
    assert format_budget(budget) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "10", "10usd", "usd/month", "10eur/month", "10usd/year", "-1usd/day", "1e3tokens/day"),
        *("0usd/day", "0tokens/day", "1.5tokens/day", "0.0000000001usd/day", "9999999999usd/month"),
        *("10usd/month\n", "\u0661tokens/day", "1" * 5000 + "tokens/day", "10usd/month,1usd/day"),
    ],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(GatewayError) as refused:
        parse_budget(text)
    assert refused.value.param == "budgets"
    assert len(refused.value.message) < 300


def test_one_budget_for_each_unit_and_period() -> None:
    with pytest.raises(GatewayError, match="one for each unit and period"):
        parse_budgets(["1usd/day", "2usd/day"])
    with pytest.raises(GatewayError, match="more than 6"):
        parse_budgets(["1usd/day"] * 7)
    assert len(parse_budgets(["1usd/day", "1tokens/day", "1usd/month"])) == 3


def test_amounts_have_no_exponent() -> None:
    assert format_amount(100 * 10**9, BudgetUnit.USD) == "100usd"
    assert format_amount(1, BudgetUnit.USD) == "0.000000001usd"
    assert format_amount(0, BudgetUnit.TOKENS) == "0tokens"
