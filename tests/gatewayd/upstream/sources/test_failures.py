import orjson
import pytest

from gatewayd.completions.deltas import error_message_in
from gatewayd.errors import ErrorKind
from gatewayd.upstream.http.client import TransportError
from gatewayd.upstream.sources.failures import MAX_MESSAGE_CHARACTERS, ProviderFailures, parse_retry_after

KEY = "acme-0123456789-abcdefgh"
FAILURES = ProviderFailures("acme", KEY)
# LiteLLM knows a too long request by its last words alone.
TOO_LONG = "context_length_exceeded, the request is longer than the model's context length"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.INVALID_REQUEST),
        (413, ErrorKind.INVALID_REQUEST),
        (422, ErrorKind.INVALID_REQUEST),
        (404, ErrorKind.NOT_FOUND),
        (429, ErrorKind.RATE_LIMITED),
        (503, ErrorKind.UPSTREAM_UNREACHABLE),
        (529, ErrorKind.UPSTREAM_UNREACHABLE),
        (401, ErrorKind.UPSTREAM_FAILED),
        (403, ErrorKind.UPSTREAM_FAILED),
        (418, ErrorKind.UPSTREAM_FAILED),
        (500, ErrorKind.UPSTREAM_FAILED),
        (502, ErrorKind.UPSTREAM_FAILED),
        (101, ErrorKind.UPSTREAM_FAILED),
    ],
)
def test_kinds_by_status(status, kind):
    error = FAILURES.from_answer(status, {}, b'{"error": {"message": "it rains"}}')
    assert error.kind is kind
    assert error.message == f"cannot get an answer from provider 'acme': it answered {status} (it rains)"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"error": {"message": "a"}}, "a"),
        ({"error": "b"}, "b"),
        ({"detail": "c"}, "c"),
        ({"detail": [{"msg": "d1", "loc": ["x"]}, {"msg": "d2"}]}, "d1; d2"),
        ({"message": "e"}, "e"),
        ({"text": "f"}, "f"),
        ([{"error": {"message": "g"}}], "g"),
        ({"errors": [{"message": "h"}]}, "h"),
        ({"error": {"error": {"error": {"error": {"error": {"error": "deep"}}}}}}, None),
        ({"error": {"code": 3}}, None),
        (3, None),
    ],
)
def test_messages(answer, message):
    assert error_message_in(answer) == message


@pytest.mark.parametrize(
    ("content_type", "body", "said"),
    [
        ("text/html", b"<h1>secret</h1>", "with an HTML page"),
        ("", b"\n <!DOCTYPE html>", "with an HTML page"),
        ("application/json", b" ", "with an empty body"),
        ("text/plain", b"no such luck", "(no such luck)"),
        ("text/plain", b"\xff\xfe", "(\ufffd\ufffd)"),
        ("application/json", b'{"a": 1}', '({"a": 1})'),
    ],
)
def test_bodies(content_type, body, said):
    error = FAILURES.from_answer(500, {"Content-Type": content_type}, body)
    assert error.message.endswith(f"it answered 500 {said}")


def test_redirects():
    error = FAILURES.from_answer(302, {"Location": "http://other/"}, b"")
    assert error.kind is ErrorKind.UPSTREAM_FAILED
    assert "redirects are not followed" in error.message
    assert "other" not in error.message


@pytest.mark.parametrize(
    "text",
    [
        f"wrong key {KEY}",
        f"wrong key {KEY[:10]}...",
        f"wrong key ****{KEY[-7:]}",
        "wrong key sk-proj-123456789",
        "wrong key sk-ab**********wxyz",
        "bad header Authorization: Bearer whatever",
        f"wrong key {KEY[:12]}" + "x" * 9000,
    ],
)
def test_keys_are_redacted(text):
    error = FAILURES.from_answer(401, {}, orjson.dumps({"error": {"message": text}}))
    assert "[redacted]" in error.message
    for part in (KEY, KEY[:8], KEY[-6:], "123456789", "wxyz", "whatever"):
        assert part not in error.message


def test_short_keys_are_redacted_whole():
    assert (
        ProviderFailures("acme", "hunter2").clean("no hunter2, no huntsman") == "no [redacted], no huntsman"
    )


def test_foreign_text_is_one_bounded_line():
    line = FAILURES.clean("a\r\nb\x1b[31m\x00\u202e" + "é" * 1000)
    assert line.startswith("a b\\x1b[31m\\x00\\u202eé")
    assert len(line) == MAX_MESSAGE_CHARACTERS


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("1.2", 2),
        ("-3", 0),
        ("999999999", 86_400),
        ("Thu, 01 Jan 1970 00:16:50 GMT", 10),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ("Thu, 99 Jan 1970 00:00:00 GMT", None),
        (None, None),
    ],
)
def test_retry_after(value, seconds):
    assert parse_retry_after(value, 1000) == seconds


def test_retry_after_goes_with_limits_and_overload_only():
    for status, seconds in ((429, 7), (503, 7), (529, 7), (500, None)):
        assert FAILURES.from_answer(status, {"Retry-After": "7"}, b"").retry_after == seconds


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "m"}, ErrorKind.UPSTREAM_UNREACHABLE),
        ({"code": 429, "message": "m"}, ErrorKind.RATE_LIMITED),
        ({"code": "429", "message": "m"}, ErrorKind.RATE_LIMITED),
        ({"code": "rate_limit_exceeded", "message": "m"}, ErrorKind.RATE_LIMITED),
        ({"type": "invalid_request_error", "message": "m"}, ErrorKind.INVALID_REQUEST),
        ({"code": 401, "message": "m"}, ErrorKind.UPSTREAM_FAILED),
        ({"code": ["x"], "message": "m"}, ErrorKind.UPSTREAM_FAILED),
        ("m", ErrorKind.UPSTREAM_FAILED),
    ],
)
def test_error_events(error, kind):
    found = FAILURES.from_event(error)
    assert found.kind is kind
    assert found.message == "cannot get an answer from provider 'acme': it reported: m"


def test_error_event_without_message():
    assert "an error without a message" in FAILURES.from_event({"code": 3}).message


def test_transport_errors_are_cleaned():
    error = FAILURES.from_transport(TransportError(ErrorKind.TIMEOUT, f"saw {KEY}"))
    assert error.kind is ErrorKind.TIMEOUT
    assert error.message.endswith("saw [redacted]")


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "param"),
    [
        (400, {"error": {"code": "context_length_exceeded", "param": "messages"}}, "invalid_request",
         "context_length_exceeded", "messages"),
        (400, {"error": {"message": "prompt is too long: 9 > 8"}}, "invalid_request",
         "context_length_exceeded", "messages"),
        (500, {"error": {"type": "exceed_context_size_error"}}, "invalid_request",
         "context_length_exceeded", "messages"),
        (500, {"error": {"message": "maximum context length"}}, "upstream_failed", None, None),
        (400, {"error": {"code": "unsupported_value", "param": "temperature"}}, "invalid_request",
         "unsupported_value", "temperature"),
        (400, {"code": "invalid-argument", "error": "no"}, "invalid_request", "invalid-argument", None),
        (429, {"error": {"code": "insufficient_quota"}}, "rate_limited", "insufficient_quota", None),
        (429, {"error": {"code": "rate_limit_exceeded"}}, "rate_limited", "rate_limit_exceeded", None),
        (401, {"error": {"code": "invalid_api_key", "param": "x"}}, "upstream_failed", "provider_auth", None),
        (403, {"error": {"code": "country_not_supported"}}, "upstream_failed", "provider_auth", None),
        (400, {"error": {"code": "Invalid_Api_Key"}}, "upstream_failed", "provider_auth", None),
        (400, {"error": {"code": KEY, "param": f"messages.{KEY}"}}, "invalid_request", None, None),
        (400, {"error": {"code": "x y", "param": "a" * 200}}, "invalid_request", None, None),
        (400, {"error": {"code": 400}}, "invalid_request", None, None),
    ],
)  # fmt: skip
def test_codes_and_fields_of_providers_are_kept(status, body, kind, code, param):
    error = FAILURES.from_answer(status, {}, orjson.dumps(body))
    assert (error.kind, error.code, error.provider_code, error.param) == (kind, None, code, param)


GEMINI_BUSY = {
    "code": 429,
    "message": "You exceeded your current quota, please check your plan and billing details.",
    "status": "RESOURCE_EXHAUSTED",
    "details": [
        {"@type": "QuotaFailure", "violations": [{"quotaId": "PerMinute"}]},
        {"@type": "RetryInfo", "retryDelay": "12.5s"},
    ],
}


GEMINI_DAY = {
    **GEMINI_BUSY,
    "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}, {"retryDelay": "39043s"}],
}


def test_a_quota_of_a_day_ends_retries_and_one_of_a_minute_tells_the_wait_in_a_stream_too():
    error = FAILURES.from_answer(429, {}, orjson.dumps([{"error": GEMINI_DAY}]))
    assert (error.provider_code, "429 insufficient_quota (" in error.message) == ("insufficient_quota", True)
    error = FAILURES.from_event(GEMINI_DAY)
    assert (error.provider_code, error.retry_after) == ("insufficient_quota", None)
    error = FAILURES.from_event(GEMINI_BUSY)
    assert (error.provider_code, error.retry_after) == ("rate_limit_exceeded", 13)


@pytest.mark.parametrize(
    ("status", "headers", "body", "seconds"),
    [
        (429, {}, {"error": GEMINI_BUSY}, 13),
        (400, {}, [{"error": GEMINI_BUSY}], 13),
        (429, {}, [{"error": {**GEMINI_BUSY, "details": [], "message": "Please retry in 1m2.5s."}}], 63),
        (429, {}, [{"error": GEMINI_DAY}], None),
        (429, {"retry-after-ms": "1500"}, {"error": {"message": "wait"}}, 2),
        (429, {"Retry-After": "7", "retry-after-ms": "1500"}, {"error": {"message": "wait"}}, 7),
        (429, {"Retry-After": "7"}, {"error": {"type": "insufficient_quota"}}, None),
    ],
)
def test_how_long_to_wait(status, headers, body, seconds):
    error = FAILURES.from_answer(status, headers, orjson.dumps(body))
    assert (error.kind, error.retry_after) == (ErrorKind.RATE_LIMITED, seconds)


@pytest.mark.parametrize(
    ("status", "sentence", "named"),
    [
        (402, "it rains", "402 insufficient_quota (it rains)"),
        (400, "your prompt violates our content policy", "400 content_policy_violation (your prompt"),
        (413, "", f"413 {TOO_LONG} with an empty body"),
        (422, b"prompt is too long", f"422 {TOO_LONG} (prompt is too long)"),
    ],
)
def test_reasons_that_clients_search_in_sentences(status, sentence, named):
    body = sentence if isinstance(sentence, bytes) else orjson.dumps({"error": sentence}) if sentence else b""
    assert f"it answered {named}" in FAILURES.from_answer(status, {}, body).message


def test_codes_in_band_are_kept():
    error = FAILURES.from_event({"type": "insufficient_quota", "message": "no money", "code": None})
    assert (error.kind, error.provider_code) == (ErrorKind.RATE_LIMITED, "insufficient_quota")
    error = FAILURES.from_event({"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"})
    assert (error.kind, error.provider_code, error.param) == (
        ErrorKind.INVALID_REQUEST,
        "context_length_exceeded",
        "messages",
    )
    assert f"it reported {TOO_LONG}: prompt is too long" in error.message


def test_parts_of_the_key_are_no_part_of_a_refusal_that_is_passed_on():
    failures = ProviderFailures("near", "sk-abcdef-0123456789")
    assert failures.redacted_text(b"\xff bad key sk-abc*** (6789)") == b"\xff bad key [redacted] (6789)"
    # Words that only look like keys stay: programs recover by the words.
    assert (
        failures.redacted_text(b"tool api_get_user: sk-else-012345") == b"tool api_get_user: sk-else-012345"
    )
    assert ProviderFailures("near").redacted_text(b"any sk-abcdefgh") == b"any sk-abcdefgh"
