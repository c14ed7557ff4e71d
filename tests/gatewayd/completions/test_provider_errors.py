"""Tests for gatewayd.completions.provider_errors; what becomes of it is in test_failures."""

from typing import Any

import pytest

from gatewayd.completions.provider_errors import (
    OVERFLOW_SENTENCES,
    ReportedFailure,
    parse_reported_failure,
    says_overflow,
)


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (
            {"error": {"code": "a", "param": "messages.[0].content"}},
            ReportedFailure("a", "messages.[0].content"),
        ),
        ({"error": {"error": {"code": "a", "param": "b"}}}, ReportedFailure("a", "b")),
        ([{"error": {"code": "a"}}], ReportedFailure("a")),
        ({"code": "a", "error": "no"}, ReportedFailure("a")),
        (
            {"error": {"type": "insufficient_quota", "code": "credit_balance_exhausted"}},
            ReportedFailure("credit_balance_exhausted"),
        ),
        (
            {"error": {"type": "insufficient_quota", "code": "new_word"}},
            ReportedFailure("insufficient_quota"),
        ),
        ({"error": {"code": "unauthorized", "param": "a"}}, ReportedFailure()),
        ({"error": "no"}, ReportedFailure()),
        ("no", ReportedFailure()),
        ([], ReportedFailure()),
        (None, ReportedFailure()),
    ],
)
def test_what_is_reported(answer: Any, reported: ReportedFailure) -> None:
    assert parse_reported_failure(answer) == reported


@pytest.mark.parametrize("sentence", OVERFLOW_SENTENCES)
def test_sentences_about_long_requests(sentence: str) -> None:
    assert says_overflow(f"Oh: {sentence.upper()} 9")
    assert parse_reported_failure({"error": {"code": "a"}}, sentence) == ReportedFailure(
        "context_length_exceeded", "messages"
    )


@pytest.mark.parametrize("sentence", ["", "string too long. Expected a string with maximum length 9", "no"])
def test_other_sentences(sentence: str) -> None:
    assert not says_overflow(sentence)
