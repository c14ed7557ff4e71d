"""The manual page of the commands."""

import re
from typing import Any

import typer

from gatewayctl.failures import TABLE
from gatewayctl.main import app
from tests.write_command_manual import PAGE, escape, literal, page


def walk(command: Any, path: str = "") -> list[tuple[str, Any]]:
    """Return every verb with its path; a hidden noun is another name of one that is shown."""
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [
        found
        for name, below in command.commands.items()
        if not below.hidden
        for found in walk(below, f"{path} {name}".strip())
    ]


def test_the_page_is_the_one_that_the_commands_give() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.write_command_manual"


def test_every_command_option_and_kind_is_in_the_page() -> None:
    text = PAGE.read_text().replace(r"\-", "-")
    assert "\n.It Fl h , Fl -help\n" in text
    for path, command in walk(typer.main.get_command(app)):
        assert f"\n.Cm {path}\n" in text
        for item in command.params:
            for name in item.opts if item.param_type_name == "option" else ():
                assert f"Fl {name[1:]}" in text, f"{path} {name}"
    for kind, row in TABLE.items():
        assert f".Ql {kind} :\n{row.meaning}" in text
    codes = {int(code) for code in re.findall(r"(?m)^\.It (\d+)$", text)}
    assert codes == {0, 130} | {row.exit_code for row in TABLE.values()}


def test_every_verb_has_an_example_and_a_sentence() -> None:
    for path, command in walk(typer.main.get_command(app)):
        assert (command.help or "").strip().endswith("."), path
        assert f"gatewayctl {path}" in (command.epilog or ""), path


def test_text_cannot_become_a_request() -> None:
    assert escape(".Sh x") == r"\&.Sh x"
    assert escape("a \\ --b -o c") == r"a \e \-\-b \-o c"
    assert literal("a-b \\ --c") == r"a\-b \e \-\-c"
