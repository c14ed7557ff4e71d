"""Bars and columns of gatewayctl usage."""

import pytest

from gatewayctl.commands.consumption.usage import plotted, shown_cost, view_of
from gatewayctl.wire.consumption.usage import UsageLine

LINE = UsageLine(
    model="small",
    user_id="gone",
    user="",
    requests=2,
    failures=0,
    prompt_tokens=10,
    cached_tokens=0,
    cache_written_tokens=0,
    completion_tokens=30,
    reasoning_tokens=0,
    total_tokens=40,
    cost=0.5,
    unpriced=0,
    estimated=0,
    seconds=1.25,
    first_seconds=None,
)


def changed(**values: object) -> UsageLine:
    return LINE.model_copy(update=values)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (LINE, "$0.500000"),
        (changed(cost=None, unpriced=2), "unknown"),
        (changed(unpriced=1), "$0.500000 +1 unknown"),
        (changed(cost=0.0), "$0.000000"),
    ],
)
def test_a_cost_is_never_zero_for_an_unknown_price(line: UsageLine, shown: str) -> None:
    assert shown_cost(line) == shown


def test_bars_are_as_long_as_costs_or_tokens() -> None:
    half = changed(model="a", cost=0.25)
    assert plotted([LINE, half], ["model"]) == [
        f"small  {'#' * 40}  $0.500000",
        f"a      {'#' * 20 + ' ' * 20}  $0.250000",
    ]
    unknown = changed(cost=None, unpriced=1)
    assert plotted([unknown], ["user", "model"]) == [f"gone small  {'#' * 40}  40 tokens"]
    assert plotted([], ["model"]) == []


def test_columns_begin_with_what_is_summed_up_by() -> None:
    view = view_of(["user", "model"])
    assert list(view.columns)[:2] == ["USER", "MODEL"]
    assert [view.columns[name](LINE) for name in ("USER", "MODEL", "REQUESTS")] == ["gone", "small", 2]
    assert view.name(LINE) == "gone small"
