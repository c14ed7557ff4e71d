"""Tests for gatewayd.completions.limits."""

import pytest

from gatewayd.completions.limits import MAX_CHOICES, AnswerSizeError, check_choices
from gatewayd.errors import ErrorKind


def test_an_answer_over_a_limit_is_the_providers_failure() -> None:
    error = AnswerSizeError("it is long")
    assert (error.kind, error.message, error.reason) == (
        ErrorKind.UPSTREAM_FAILED,
        "cannot get an answer: it is long",
        "it is long",
    )


def test_choices() -> None:
    check_choices(MAX_CHOICES)
    with pytest.raises(AnswerSizeError, match=f"it has over {MAX_CHOICES} choices"):
        check_choices(MAX_CHOICES + 1)
