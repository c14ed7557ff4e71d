"""Questions of calls at the terminal."""

import getpass
import io
import sys
from typing import Any

import pytest

from gatewayctl.events.call_prompts import ask
from gatewayctl.failures import CommandError
from gatewayctl.wire.events import Call, CallAnswer
from tests.fakes.daemons.control_socket import Terminal


def call(kind: str, data: Any) -> Call:
    return Call(id="k1", user_id="u1", type=kind, data=data)


def answered(monkeypatch: pytest.MonkeyPatch, kind: str, data: Any, typed: str) -> Any:
    """Return the result that is given for what somebody types."""
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    answer = ask(call(kind, data))
    assert answer == CallAnswer(result=answer.result)
    assert "error" not in answer.model_fields_set
    return answer.result


@pytest.mark.parametrize(
    ("typed", "agrees"), [("y\n", True), ("YES\n", True), ("\n", False), ("n\n", False), ("yep\n", False)]
)
def test_a_confirmation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str, agrees: bool
) -> None:
    data = {"title": "Delete\x1b[2J?", "message": "All\nof it"}
    assert answered(monkeypatch, "confirmation", data, typed) is agrees
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "Delete\\x1b[2J?\nAll\nof it\n[y/N] "


@pytest.mark.parametrize(
    ("data", "typed", "result", "prompt"),
    [
        ({"title": "Name?"}, "Ann B\n", "Ann B", "Name?\n> "),
        ({"title": "Name?"}, "\n", "", "Name?\n> "),
        ({"value": "Ann", "placeholder": "who"}, "\n", "Ann", "[Ann] "),
        ({"value": "Ann"}, "Bob\r\n", "Bob", "[Ann] "),
        ({"value": 3, "placeholder": "who"}, "\n", "", "[who] "),
        (None, "x\n", "x", "> "),
    ],
)
def test_an_input(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: Any,
    typed: str,
    result: str,
    prompt: str,
) -> None:
    assert answered(monkeypatch, "input", data, typed) == result
    assert capsys.readouterr().err == prompt


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[tuple[str, Any]] = []

    def hidden(prompt: str, stream: Any) -> str:
        asked.append((prompt, stream))
        return "s3cret"

    monkeypatch.setattr(getpass, "getpass", hidden)
    assert (
        answered(monkeypatch, "input", {"title": "Token?", "type": "password", "value": "old"}, "")
        == "s3cret"
    )
    assert asked == [("(not shown) ", sys.stderr)]
    assert capsys.readouterr().err == "Token?\n"


def test_a_choice_is_made_by_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["red", {"value": "#00f", "label": "blue"}, {"value": "x"}]
    data = {"input": {"type": "select", "options": options}}
    assert answered(monkeypatch, "input", data, "blue\n0\n4\n2\n") == "#00f"
    assert capsys.readouterr().err == "1. red\n2. blue\n3. x\n" + "[1-3] " * 4
    assert answered(monkeypatch, "input", data, "1\n") == "red"
    assert answered(monkeypatch, "input", {"input": {"options": "junk"}}, "free\n") == "free"


@pytest.mark.parametrize("kind", ["confirmation", "input"])
def test_who_leaves_leaves_the_call_waiting(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    with pytest.raises(CommandError, match="the call still waits") as caught:
        ask(call(kind, {}))
    assert caught.value.kind == "cancelled"


def test_a_script_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    with pytest.raises(CommandError, match="give its result with --json") as caught:
        ask(call("execute", {"code": "return 1"}))
    assert caught.value.exit_code == 2


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(CommandError, match="cannot ask without a terminal") as caught:
        ask(call("confirmation", {}))
    assert caught.value.exit_code == 2
