"""What all commands share."""

import os
import subprocess
import sys
from typing import Annotated

import pytest
import typer

from gatewayctl.command import Noun, Session, add_verb, describe, epilog
from gatewayctl.render import Output, View
from gatewayctl.wire.base import Outcome, Written

VIEW: View[Written] = View(name=lambda row: "thing", columns={})


def run(app: typer.Typer, *args: str) -> Session:
    session = Session()
    app(args=list(args), standalone_mode=False, obj=session)
    return session


def test_output_stands_after_the_verb_and_changes_the_session() -> None:
    seen: list[tuple[str, int]] = []
    noun = Noun("Things.")

    @noun.verb("one", "gatewayctl thing one x")
    def one(session: Session, name: str, count: int = 1) -> None:
        seen.append((name, count))

    @noun.verb("two")
    def two(session: Session) -> None:
        """Do nothing."""

    assert run(noun, "one", "x", "--count", "3", "-o", "json").output is Output.JSON
    assert run(noun, "one", "y", "--output=name").output is Output.NAME
    assert run(noun, "two").output is Output.TABLE
    assert seen == [("x", 3), ("y", 1)]


def test_a_lenient_noun_means_its_verb_run() -> None:
    seen: list[str] = []
    noun = Noun("Things.", lenient=True)

    @noun.verb("run")
    def one(session: Session, name: Annotated[str, typer.Argument()] = "-") -> None:
        seen.append(f"run {name}")

    @noun.verb("list")
    def two(session: Session) -> None:
        seen.append("list")

    assert run(noun, "-o", "json", "x").output is Output.JSON
    for args in (("list",), ("run", "list"), (), ("--", "list")):
        run(noun, *args)
    assert seen == ["run x", "list", "run list", "run -", "run list"]


def test_a_lenient_noun_has_help_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    noun = Noun("Things.", lenient=True)

    @noun.verb("run")
    def one(session: Session) -> None:
        """Do one thing."""

    add_verb(noun, "two", one)
    run(noun, "--help")
    assert "Things." in capsys.readouterr().out


def test_examples_are_shown_as_written(capsys: pytest.CaptureFixture[str]) -> None:
    app = Noun("Things.")

    def one(session: Session) -> None:
        """Do one thing."""

    add_verb(app, "one", one, "gatewayctl one", "gatewayctl one  -o json")
    add_verb(app, "two", one)
    run(app, "one", "--help")
    assert "Examples:\n    gatewayctl one\n    gatewayctl one  -o json\n" in capsys.readouterr().out
    assert epilog(["a"]) == "\b\nExamples:\n  a"


def test_a_session_is_needed() -> None:
    noun = Noun("Things.")

    @noun.verb("one")
    def one(session: Session) -> None:
        """Do one thing."""

    add_verb(noun, "two", one)
    with pytest.raises(RuntimeError, match="root command"):
        noun(args=["one"], standalone_mode=False)


def test_what_a_write_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert describe(Outcome.CREATED, dry_run=True) == "dry run: created"
    row = Written(outcome=Outcome.CHANGED)
    Session().written(row, VIEW, "some")
    Session(output=Output.JSONL).written(row, VIEW, "some")
    Session(output=Output.NAME).written(row, VIEW, "some")
    assert capsys.readouterr().out == 'changed some thing\n{"outcome": "changed", "dry_run": false}\nthing\n'


def test_notes_are_for_people_only(capsys: pytest.CaptureFixture[str]) -> None:
    Session().note("look \x1b[2J")
    Session(output=Output.JSON).note("hidden")
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "look \\x1b[2J\n")


@pytest.mark.process
def test_nobody_reads_on() -> None:
    """A closed pipe ends the command quietly with success."""
    reading, writing = os.pipe()
    os.close(reading)
    code = (
        "import sys\n"
        "from gatewayctl.command import Noun, Session\n"
        "noun = Noun('Things.')\n"
        "@noun.verb('one')\n"
        "def one(session: Session) -> None:\n"
        "    print('x' * 100000)\n"
        "@noun.verb('two')\n"
        "def two(session: Session) -> None:\n"
        "    pass\n"
        "sys.exit(noun(args=['one'], standalone_mode=False, obj=Session()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
