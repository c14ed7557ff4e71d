"""Questions at the terminal, and secrets from files."""

import getpass
import io
import sys
from pathlib import Path

import pytest

from gatewayctl.failures import CommandError
from gatewayctl.prompts import ask_password, confirm, is_in_file, read_secret, read_text, usage
from tests.fakes.daemons.control_socket import Terminal


def test_usage_failures_exit_with_two_and_no_hint() -> None:
    error = usage("cannot", "--yes")
    assert (error.exit_code, error.hint, error.param) == (2, "", "--yes")


@pytest.mark.parametrize("answer", ["y", "Y", "yes", "YES"])
def test_yes_goes_on(
    answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(f"{answer}\n"))
    confirm("Remove it?", yes=False)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "Remove it? [y/N] ")


@pytest.mark.parametrize("answer", ["", "\n", "n\n", "yep\n"])
def test_anything_else_stops(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    with pytest.raises(CommandError) as caught:
        confirm("Remove it?", yes=False)
    assert caught.value.kind == "cancelled"


def test_without_a_terminal_yes_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    confirm("Remove it?", yes=True)
    with pytest.raises(CommandError) as caught:
        confirm("Remove it?", yes=False)
    assert caught.value.exit_code == 2


def test_secrets_lose_one_newline_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    path.write_text(" two \n\n")
    assert read_secret(str(path), "--password-file") == " two \n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("from stdin\r\n"))
    assert read_secret("-", "--password-file") == "from stdin"


def test_texts_stand_there_or_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_text("from a file\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO("from stdin\n"))
    given = ["as it is", "a@b", "", f"@{tmp_path}/text", "@-"]
    told = ["as it is", "a@b", "", "from a file", "from stdin"]
    assert [read_text(each, "--system") for each in given] == told
    assert [is_in_file(each) for each in given] == [False, False, False, True, True]
    with pytest.raises(CommandError, match="--system /none") as caught:
        read_text("@/none", "--system")
    assert caught.value.param == "--system"


def test_unreadable_and_empty_secrets(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for name in ("absent", "empty", "binary"):
        with pytest.raises(CommandError) as caught:
            read_secret(str(tmp_path / name), "--password-file")
        assert caught.value.exit_code == 2
        assert "--password-file" in caught.value.message


def test_passwords_are_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    answers = iter(["one", "one", "one", "two", "", ""])
    monkeypatch.setattr(getpass, "getpass", lambda *_, **__: next(answers))
    assert ask_password() == "one"
    for _ in range(2):
        with pytest.raises(CommandError) as caught:
            ask_password()
        assert caught.value.kind == "cancelled"
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(CommandError, match="without a terminal"):
        ask_password()
