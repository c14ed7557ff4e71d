import hashlib
import io
from datetime import timedelta

import pytest

from gatewayd.plugins.open_webui.modules import misc
from gatewayd.plugins.open_webui.modules.constants import ERROR_MESSAGES, TASKS


def test_merging() -> None:
    target = {"a": {"b": 1, "c": 2}, "d": 3}
    assert misc.deep_update(target, {"a": {"b": 4}, "d": {"e": 5}}) is target
    assert target == {"a": {"b": 4, "c": 2}, "d": {"e": 5}}


def test_digests() -> None:
    known = hashlib.sha256(b"x" * 100_000).hexdigest()
    assert misc.calculate_sha256(io.BytesIO(b"x" * 100_000)) == known
    assert misc.calculate_sha256_string("x" * 100_000) == known
    assert misc.get_gravatar_url(" Ada@Example.org ") == misc.get_gravatar_url("ada@example.org")
    assert misc.get_gravatar_url("ada@example.org").startswith("https://www.gravatar.com/avatar/")


@pytest.mark.parametrize(
    ("address", "valid"),
    [("a@b.org", True), ("a@localhost", True), ("a@b", False), ("a", False), ("a b@c.org", False)],
)
def test_addresses(address: str, valid: bool) -> None:
    assert misc.validate_email_format(address) is valid


def test_file_names() -> None:
    assert misc.sanitize_filename("My  Report (final)!.PDF") == "my-report-final.pdf"
    assert misc.sanitize_filename("../../etc/passwd") == "passwd"


def test_durations() -> None:
    assert misc.parse_duration("1h30m") == timedelta(hours=1, minutes=30)
    assert misc.parse_duration("500ms") == timedelta(milliseconds=500)
    assert misc.parse_duration("1.5d") == timedelta(hours=36)
    assert misc.parse_duration("-1") is misc.parse_duration("0") is None
    with pytest.raises(ValueError, match="cannot parse duration 'soon'"):
        misc.parse_duration("soon")


def test_biases() -> None:
    assert misc.convert_logit_bias_input_to_json("5: 10, 6:-200,7:300") == '{"5": 10, "6": -100, "7": 100}'
    assert misc.convert_logit_bias_input_to_json("") is None


def test_lists_of_allowed_ends() -> None:
    assert misc.is_string_allowed("x.example.org")
    assert misc.is_string_allowed("x.example.org", ["example.org"])
    assert not misc.is_string_allowed("x.example.com", ["example.org"])
    assert not misc.is_string_allowed(["x.example.org"], ["example.org", "!x.example.org"])


def test_ids_of_stored_chats() -> None:
    assert misc.is_saved_chat_id("c1")
    assert not misc.is_saved_chat_id("local:1")
    assert not misc.is_saved_chat_id("temporary:1")
    assert not misc.is_saved_chat_id("")
    assert not misc.is_saved_chat_id(None)


def test_tasks_are_text() -> None:
    assert TASKS.TITLE_GENERATION == "title_generation"
    assert f"{TASKS.TAGS_GENERATION}" == str(TASKS.TAGS_GENERATION) == "tags_generation"
    assert "function_calling" in [TASKS.FUNCTION_CALLING]
    assert TASKS("query_generation") is TASKS.QUERY_GENERATION


def test_error_messages_are_text() -> None:
    assert str(ERROR_MESSAGES.NOT_FOUND) == ERROR_MESSAGES.NOT_FOUND.value
    assert ERROR_MESSAGES.DEFAULT("disk full") == "the request failed: disk full"
    assert ERROR_MESSAGES.DEFAULT() == "the request failed"
