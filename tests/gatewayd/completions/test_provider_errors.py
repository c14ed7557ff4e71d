"""Tests for gatewayd.completions.provider_errors; what becomes of it is in test_failures."""

from typing import Any

import pytest

from gatewayd.completions.provider_errors import OVERFLOW_SENTENCES, Reported, reported_in, says_overflow


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        ({"error": {"code": "a", "param": "messages.[0].content"}}, Reported("a", "messages.[0].content")),
        ({"error": {"error": {"code": "a", "param": "b"}}}, Reported("a", "b")),
        ([{"error": {"code": "a"}}], Reported("a")),
        ({"code": "a", "error": "no"}, Reported("a")),
        (
            {"error": {"type": "insufficient_quota", "code": "credit_balance_exhausted"}},
            Reported("credit_balance_exhausted"),
        ),
        ({"error": {"type": "insufficient_quota", "code": "new_word"}}, Reported("insufficient_quota")),
        ({"error": {"code": "unauthorized", "param": "a"}}, Reported()),
        ({"error": "no"}, Reported()),
        ("no", Reported()),
        ([], Reported()),
        (None, Reported()),
    ],
)
def test_what_is_reported(answer: Any, reported: Reported) -> None:
    assert reported_in(answer) == reported


@pytest.mark.parametrize("sentence", OVERFLOW_SENTENCES)
def test_sentences_about_long_requests(sentence: str) -> None:
    assert says_overflow(f"Oh: {sentence.upper()} 9")
    assert reported_in({"error": {"code": "a"}}, sentence) == Reported("context_length_exceeded", "messages")


@pytest.mark.parametrize("sentence", ["", "string too long. Expected a string with maximum length 9", "no"])
def test_other_sentences(sentence: str) -> None:
    assert not says_overflow(sentence)
