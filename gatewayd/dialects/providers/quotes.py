"""Shows values of a request in sentences, whatever their size; pure."""

from typing import Final

MAX_QUOTED_CHARACTERS: Final = 40
"""Maximum number of characters of a text that a sentence quotes."""


def quoted(value: object) -> str:
    """Return a short form of a value; texts are cut, and lists and objects are not shown."""
    if isinstance(value, str):
        return repr(value[:MAX_QUOTED_CHARACTERS])
    return repr(value) if isinstance(value, bool | int | float | None) else "this value"
