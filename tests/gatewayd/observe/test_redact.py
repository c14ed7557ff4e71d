import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatewayd.observe.redact import REDACTED, escape, is_sensitive, quote, redact, redact_value

KEY = "sk-" + "0123456789abcdef" * 4
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "text",
    [
        KEY,
        f"key {KEY} refused",
        f"Bearer {KEY}",
        f"Bearer%20{KEY}",
        f"prefix{KEY}",
        KEY[:12],
        "sk-ant-api03-abc_DEF-0123456789",
        f'{{"key": "{KEY}"}}',
        f"b'Authorization: Bearer {KEY}\\x00'",
    ],
)
def test_api_keys_are_taken_out(text: str) -> None:
    cleaned = redact(text)
    assert "0123456789" not in cleaned
    assert KEY[3:12] not in cleaned
    assert REDACTED in cleaned


@pytest.mark.parametrize("text", [JWT, f"token={JWT}", f"Bearer {JWT}", JWT[:20], f"a.{JWT}.b"])
def test_web_tokens_are_taken_out(text: str) -> None:
    cleaned = redact(text)
    assert "eyJ" not in cleaned
    assert "c2lnbmF0" not in cleaned


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Basic dXNlcjpwdw==", f"Authorization: Basic {REDACTED}"),
        ("authorization: opaque", f"authorization: {REDACTED}"),
        ("X-API-Key: opaque-value", f"X-API-Key: {REDACTED}"),
        ("Cookie: session=abc", f"Cookie: {REDACTED}"),
        ("BEARER opaque", f"BEARER {REDACTED}"),
        ("Bearer\topaque\x00rest", f"Bearer\t{REDACTED}"),
        ("/v1/models?api_key=abc&limit=3", f"/v1/models?api_key={REDACTED}&limit=3"),
        ("/x?access_token=abc", f"/x?access_token={REDACTED}"),
        ("postgres://gateway:hunter2@db/chat", f"postgres://gateway:{REDACTED}@db/chat"),
    ],
)
def test_credentials_are_taken_out(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "cannot find model 'smollm2'",
        "task-scheduler stopped",
        "max_tokens=5 keys=3",
        "http://127.0.0.1:8080/health",
        "cannot set the password: too short",
    ],
)
def test_plain_text_stays(text: str) -> None:
    assert redact(text) == text


@settings(deadline=None)
@given(st.text(), st.text())
def test_a_key_never_survives_its_surroundings(before: str, after: str) -> None:
    assert KEY[3:] not in redact(f"{before}{KEY}{after}")


@pytest.mark.parametrize(
    "name", ["password", "Authorization", "x-api-key", "secret", "new_password", "SCIM_TOKEN", "key_value"]
)
def test_sensitive_names(name: str) -> None:
    assert is_sensitive(name)
    assert redact_value(name, "anything") == REDACTED


@pytest.mark.parametrize("name", ["key_id", "user_id", "max_tokens", "path", "status", "request_id"])
def test_other_names(name: str) -> None:
    assert not is_sensitive(name)
    assert redact_value(name, "anything") == "anything"


def test_containers_keep_their_shape() -> None:
    value = {"headers": {"Cookie": "a", "Accept": "b"}, "list": [KEY, 3, None], "ok": True, "path": object}
    cleaned = redact_value("context", value)
    assert cleaned == {
        "headers": {"Cookie": REDACTED, "Accept": "b"},
        "list": ["sk-" + REDACTED, 3, None],
        "ok": True,
        "path": "<class 'object'>",
    }


def test_control_characters_are_escaped() -> None:
    assert escape("a\r\nb\tc\x1b[31m\x00\x85\u2028\u202e\ud800\u200b\u200f\U000e0041") == (
        "a\\r\\nb\\tc\\x1b[31m\\x00\\x85\\u2028\\u202e\\ud800\\u200b\\u200f\\U000e0041"
    )


def test_a_quoted_text_ends_where_it_ends() -> None:
    assert quote('a\\" by=admin\n') == '"a\\\\\\" by=admin\\n"'


@settings(deadline=None)
@given(st.text())
def test_escaped_text_is_one_line_and_encodes(text: str) -> None:
    escaped = escape(text)
    assert len(escaped.splitlines()) <= 1
    escaped.encode()
