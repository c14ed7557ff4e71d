"""Help texts name what they are about: a reader sees each alone, beside its option."""

import re
from collections.abc import Iterator
from typing import Any, Final

import typer

from gatewayctl.main import app

RIDDLE: Final = re.compile(
    r"(?:It|Its|Only|What|Whether|That|Those|Them|They|These|This|Who|Whose|Where|How|Which|All|Also) ", re.I
)
"""A beginning that stands for a thing without its name."""

REVIEWED: Final = frozenset(
    {
        "API keys.",
        "Base model.",
        "Also create, change and delete a group for the check.",
        "Also delete files that no other collection holds.",
        "Also give the files of removed users in these collections.",
        "Also show the rank of each passage in each search.",
    }
)
"""Short texts, and texts with such a beginning, that were read and name their thing."""


def texts(command: Any) -> Iterator[str]:
    """Yield the help texts of a command, of its parameters and of the commands below it."""
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    for below in getattr(command, "commands", {}).values():
        yield from texts(below)


def test_each_help_text_names_its_object() -> None:
    found = {" ".join(text.split()) for text in texts(typer.main.get_command(app))} - {""}
    doubtful = {text for text in found if len(text.split()) < 3 or RIDDLE.match(text)}
    assert doubtful - REVIEWED == set()
    assert doubtful >= REVIEWED, "what is reviewed no longer exists"
    assert len(found) > 150
