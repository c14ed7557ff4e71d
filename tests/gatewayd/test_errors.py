"""Tests for gatewayd.errors."""

from gatewayd.errors import ErrorKind, GatewayError, invalid, not_found


def test_error_carries_everything() -> None:
    error = GatewayError(ErrorKind.RATE_LIMITED, "cannot answer", param="model", code="busy", retry_after=3)
    assert (error.kind, error.message, error.param, error.code, error.retry_after) == (
        ErrorKind.RATE_LIMITED,
        "cannot answer",
        "model",
        "busy",
        3,
    )
    assert str(error) == "cannot answer"


def test_shorthands_name_what_is_wrong() -> None:
    assert invalid("cannot accept role", param="role").param == "role"
    missing = not_found("user", "u1")
    assert missing.kind is ErrorKind.NOT_FOUND
    assert "'u1'" in missing.message


def test_a_long_name_is_repeated_in_part() -> None:
    message = not_found("user", "a" * 7000).message
    assert message == f"cannot find user '{'a' * 100}...'"


def test_what_a_plugin_says_can_be_written() -> None:
    error = GatewayError(ErrorKind.PLUGIN_FAILED, "cannot go on: \ud800 and ü")
    assert error.message == str(error) == "cannot go on: ? and ü"
