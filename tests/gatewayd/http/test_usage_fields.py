"""Tests for gatewayd.http.usage_fields: questions in query parameters, and the lines of a report."""

import pytest

from gatewayd.errors import GatewayError
from gatewayd.http.usage_fields import read_query, shown_line
from gatewayd.metering.usage_records import UsageDimension, UsageLine, UsageSums


def test_a_question_is_read_whole() -> None:
    sent = {"by": "day,user,day", "since": "2026-11-01", "model": "m", "provider": "", "limit": "7"}
    asked = read_query(sent, user_id="u1")
    assert asked.by == (UsageDimension.DAY, UsageDimension.USER)
    assert (asked.since, asked.until, asked.model, asked.provider) == ("2026-11-01", "", "m", None)
    assert (asked.limit, asked.user_id) == (7, "u1")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("by", value) for value in ("colour", "", "day,,user")),
        *(("limit", value) for value in ("0", "-1", "1e3", "10000000", "99", "\N{ARABIC-INDIC DIGIT SEVEN}")),
        *(
            ("since", value)
            for value in ("2026-13-01", "today", "2026-1-1", "\N{ARABIC-INDIC DIGIT TWO}026-01-01")
        ),
        ("until", "20261101"),
        ("model", "m" * 2049),
    ],
)
def test_a_bad_parameter_is_named(name: str, value: str) -> None:
    with pytest.raises(GatewayError) as caught:
        read_query({name: value}, most=50)
    assert caught.value.param == name


def test_a_line_tells_ids_names_and_no_cost_that_is_unknown() -> None:
    asked = read_query({"by": "user,model"})
    sums = UsageSums(requests=2, prompt=10, completion=5, milliseconds=1500, first_milliseconds=300, timed=2)
    told = shown_line(asked, UsageLine(("u1", "m"), ("Ann", "m"), sums))
    assert (told["user_id"], told["user"], told["model"], told["total_tokens"]) == ("u1", "Ann", "m", 15)
    assert (told["seconds"], told["first_seconds"], told["cost"]) == (1.5, 0.15, 0.0)
    unpriced = UsageLine(("u1", "m"), ("Ann", "m"), UsageSums(requests=1, unpriced=1))
    told = shown_line(asked, unpriced)
    assert (told["cost"], told["first_seconds"]) == (None, None)
