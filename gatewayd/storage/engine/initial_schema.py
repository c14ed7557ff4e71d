"""The schema of an empty database as one script, which takes the place of the migrations that it holds.

There is one for each engine beside the migrations; `python -m tests.write_initial_schema` writes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

PREFIX: Final = "-- Migrations:"
"""The beginning of the first line, before the names of the migrations."""


@dataclass(frozen=True, slots=True)
class InitialSchema:
    """The statements and the migrations that they take the place of, in order."""

    migrations: Sequence[str]
    script: str


def read_initial_schema(package: str, engine: str, known: Sequence[str]) -> InitialSchema | None:
    """Return the script for `sqlite` or `postgresql`, None unless the known migrations begin with its own."""
    resource = files(package) / f"{engine}.sql"
    if not resource.is_file():
        return None
    first, _, script = resource.read_text(encoding="utf-8").partition("\n")
    names = first.removeprefix(PREFIX).split()
    return InitialSchema(names, script) if names and names == list(known[: len(names)]) else None
