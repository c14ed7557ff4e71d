"""Budgets as texts, such as `10usd/month` and `1000000tokens/day`; pure."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from gatewayd.errors import invalid, shorten
from gatewayd.limits.periods import BudgetPeriod
from gatewayd.limits.records import NANO, BudgetRule, BudgetUnit

MAX_BUDGETS: Final = 6
"""Maximum number of budgets of one limit: one for each unit and period."""

MAX_AMOUNT: Final = 10**18
"""Maximum amount of tokens or nano-dollars."""

_BUDGET: Final = re.compile(r"(\d{1,18})(?:\.(\d{1,9}))? ?(tokens|usd)/(day|week|month)", re.ASCII)


def parse_budget(text: str) -> BudgetRule:
    """Return the budget of a text; invalid_request for another text, and for an amount of 0 or too much."""
    found = _BUDGET.fullmatch(text)
    if found is None or (found[2] and found[3] == BudgetUnit.TOKENS):
        raise invalid(
            f"cannot accept budget {shorten(text)!r}: expected an amount such as 10usd/month or"
            " 1000000tokens/day",
            param="budgets",
        )
    unit = BudgetUnit(found[3])
    amount = int(found[1])
    if unit is BudgetUnit.USD:
        amount = amount * NANO + int((found[2] or "").ljust(9, "0"))
    if not 0 < amount <= MAX_AMOUNT:
        raise invalid(
            f"cannot accept budget {shorten(text)!r}: expected an amount above 0 and at most"
            f" {format_amount(MAX_AMOUNT, unit)}",
            param="budgets",
        )
    return BudgetRule(amount, unit, BudgetPeriod(found[4]))


def parse_budgets(texts: Sequence[str]) -> tuple[BudgetRule, ...]:
    """Return budgets; invalid_request if two of them have the same unit and period."""
    if len(texts) > MAX_BUDGETS:
        raise invalid(f"cannot accept budgets: more than {MAX_BUDGETS}", param="budgets")
    found = tuple(parse_budget(text) for text in texts)
    if len({(each.unit, each.period) for each in found}) < len(found):
        raise invalid("cannot accept budgets: expected one for each unit and period at most", param="budgets")
    return found


def format_budget(budget: BudgetRule) -> str:
    """Return a budget as `parse_budget` takes it."""
    return f"{format_amount(budget.amount, budget.unit)}/{budget.period}"


def format_amount(amount: int, unit: BudgetUnit) -> str:
    """Return an amount with its unit, for example `2.5usd`."""
    if unit is BudgetUnit.TOKENS:
        return f"{amount}tokens"
    whole = Decimal(amount) / NANO
    return f"{whole.normalize():f}usd"
