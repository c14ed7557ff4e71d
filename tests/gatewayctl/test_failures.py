"""Kinds, exit codes and how failures are told."""

import json

import pytest

from gatewayctl.failures import TABLE, CommandError
from gatewayd.errors import ErrorKind


def test_every_kind_of_the_daemon_has_a_row() -> None:
    assert {kind.value for kind in ErrorKind} <= set(TABLE)
    own = set(TABLE) - {kind.value for kind in ErrorKind}
    assert own == {"cancelled", "usage", "system", "unreachable", "protocol_mismatch", "busy", "stopped"}


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("invalid_request", 1),
        ("empty_content", 1),
        ("too_large", 1),
        ("rate_limited", 1),
        ("upstream_failed", 1),
        ("upstream_unreachable", 1),
        ("plugin_failed", 1),
        ("not_configured", 1),
        ("internal", 1),
        ("unavailable", 1),
        ("timeout", 1),
        ("cancelled", 1),
        ("system", 1),
        ("usage", 2),
        ("unreachable", 3),
        ("unauthenticated", 4),
        ("forbidden", 4),
        ("not_found", 5),
        ("conflict", 6),
        ("protocol_mismatch", 7),
        ("a_kind_of_tomorrow", 1),
    ],
)
def test_exit_codes(kind: str, code: int) -> None:
    assert CommandError(kind, "cannot").exit_code == code


def test_meanings_and_hints_are_phrases() -> None:
    for row in TABLE.values():
        assert row.meaning
        assert not row.meaning.endswith(".")
        assert not row.hint.endswith(".")


def test_the_sentence_has_a_hint_line_only_when_there_is_one() -> None:
    assert CommandError("conflict", "cannot do it").sentence() == "gatewayctl: cannot do it"
    assert CommandError("conflict", "cannot do it", hint="wait").sentence().splitlines() == [
        "gatewayctl: cannot do it",
        "  hint: wait",
    ]


def test_a_terminal_is_not_steered_by_a_message() -> None:
    assert "\x1b" not in CommandError("internal", "cannot \x1b[2J").sentence()


def test_json_is_one_line_with_stable_fields() -> None:
    text = CommandError("not_found", "cannot find 'ü'", param="id", request_id="r1").as_json()
    assert "\n" not in text
    error = json.loads(text)["error"]
    assert error == {
        "kind": "not_found",
        "message": "cannot find 'ü'",
        "hint": None,
        "param": "id",
        "request_id": "r1",
    }
    assert list(error) == ["kind", "message", "hint", "param", "request_id"]


def test_a_command_may_have_a_code_of_its_own() -> None:
    assert CommandError("unreachable", "cannot reach the daemon", exit_code=75).exit_code == 75
    assert (CommandError("busy", "x").exit_code, CommandError("stopped", "x").exit_code) == (75, 130)
