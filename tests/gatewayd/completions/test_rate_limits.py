"""Tests for gatewayd.completions.rate_limits."""

import pytest

from gatewayd.completions.rate_limits import (
    MAX_PASSED_HEADERS,
    anthropic_headers,
    format_duration,
    merge_stricter,
    openai_headers,
    parse_duration,
    passed_headers,
)

NOW = 1_700_000_000  # 2023-11-14T22:13:20Z


def test_the_headers_that_callers_get() -> None:
    raw = [
        (b"Content-Type", b"application/json"),
        (b"X-RateLimit-Limit-Requests", b" 60 "),
        (b"anthropic-ratelimit-unified-status", b"allowed"),
        (b"Anthropic-Organization-Id", b"org"),
        (b"request-id", b"req_1"),
        (b"X-Request-ID", b"second"),
        (b"Retry-After-Ms", b"20"),
        (b"x-should-retry", b"true"),
        (b"x-ratelimit-long", b"9" * 201),
        (b"x-ratelimit-odd", b"\xff\x01"),
        (b"Set-Cookie", b"a=b"),
    ]
    assert passed_headers(raw) == {
        "x-ratelimit-limit-requests": "60",
        "anthropic-ratelimit-unified-status": "allowed",
        "x-provider-request-id": "req_1",
        "retry-after-ms": "20",
        "x-should-retry": "true",
    }
    assert len(passed_headers([(b"x-ratelimit-%d" % n, b"1") for n in range(1000)])) == MAX_PASSED_HEADERS


ANTHROPIC = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-requests-reset": "2023-11-14T22:19:20Z",
    "anthropic-ratelimit-input-tokens-limit": "9",
    "x-provider-request-id": "req_1",
}
OPENAI = {
    "x-ratelimit-limit-requests": "50",
    "x-ratelimit-remaining-requests": "49",
    "x-ratelimit-reset-requests": "6m0s",
    "x-ratelimit-limit-input-tokens": "9",
    "x-provider-request-id": "req_1",
}


def test_limits_are_told_in_the_words_of_the_caller() -> None:
    assert openai_headers(ANTHROPIC, NOW) == OPENAI
    assert anthropic_headers(OPENAI, NOW) == ANTHROPIC
    assert anthropic_headers(ANTHROPIC, NOW) == ANTHROPIC
    assert openai_headers(OPENAI, NOW) == OPENAI
    odd = {
        "anthropic-ratelimit-tokens-reset": "soon",
        "anthropic-ratelimit-unified-5h-reset": "1",
        "x-ratelimit-reset": "5",
    }
    assert openai_headers(odd, NOW) == {"x-ratelimit-reset": "5"}
    assert anthropic_headers({"x-ratelimit-reset-tokens": "soon"}, NOW) == {}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("6m0s", 360), ("12ms", 0.012), ("2m59.56s", 179.56), ("1h0m1s", 3601), ("7", 7), ("1.5", 1.5),
        ("1d", 86_400), ("", None), ("m", None), ("1m2", None), ("6 m", None), ("soon", None),
        ("-1s", None), ("9" * 13, None), ("999999999999h", None), ("1s" * 100_000, 100_000),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == pytest.approx(seconds) if seconds else parse_duration(text) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0121, "13ms"), (-5, "0ms"), (7, "7s"), (59.1, "1m0s"), (360, "6m0s"), (3601, "1h0m1s"), (None, None)],
)
def test_durations_are_written(seconds: float | None, text: str | None) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("theirs", "left"),
    [
        ({}, "5"),
        ({"x-ratelimit-remaining-requests": "9"}, "5"),
        ({"x-ratelimit-remaining-requests": "4"}, "4"),
        ({"anthropic-ratelimit-requests-remaining": "9"}, "5"),
        ({"x-ratelimit-remaining-requests": "many"}, "5"),
    ],
)
def test_callers_get_the_limit_of_which_less_is_left(theirs: dict[str, str], left: str) -> None:
    ours = {
        "x-ratelimit-limit-requests": "10",
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": "3s",
        "x-gateway-queue-position": "2",
    }
    headers = dict(theirs)
    merge_stricter(headers, ours)
    assert headers["x-ratelimit-remaining-requests"] == left
    assert headers["x-gateway-queue-position"] == "2"
    assert not [name for name in headers if name.startswith("anthropic-")]
