"""What a client may call a file: display text, never a path."""

import unicodedata
from typing import Final

from gatewayd.errors import invalid

LONGEST_NAME: Final = 255
# Control characters, and halves of surrogate pairs, which no text can hold.
REFUSED: Final = frozenset({"Cc", "Cs"})


def clean_name(name: str, *, param: str = "file") -> str:
    """Return the last component of a name, normalised; invalid_request when nothing good remains."""
    last = name.replace("\\", "/").rpartition("/")[2].strip()
    if any(unicodedata.category(char) in REFUSED for char in last):
        raise invalid("cannot use the file name: it holds control characters", param=param)
    cleaned = unicodedata.normalize("NFC", last)
    if cleaned in {"", ".", ".."}:
        raise invalid("cannot use the file name: it is empty", param=param)
    if len(cleaned) > LONGEST_NAME:
        raise invalid(f"cannot use the file name: it is longer than {LONGEST_NAME} characters", param=param)
    return cleaned


def extension(name: str) -> str:
    """Return what follows the last dot of a name, in lower case; empty without one."""
    return name.rpartition(".")[2].lower() if "." in name else ""
