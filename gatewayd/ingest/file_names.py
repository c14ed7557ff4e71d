"""What a client may call a file: display text, never a path."""

from typing import Final

from gatewayd.accounts.texts import is_plain
from gatewayd.errors import invalid
from gatewayd.text import compose_nfc

MAX_NAME_CHARACTERS: Final = 255


def clean_name(name: str, *, param: str = "file") -> str:
    """Return the last component of a name, normalised; invalid_request when nothing good remains."""
    cleaned = last_component(name)
    if not is_plain(cleaned):
        raise invalid("cannot use the file name: it holds control characters", param=param)
    if cleaned in {"", ".", ".."}:
        raise invalid("cannot use the file name: it is empty", param=param)
    if len(cleaned) > MAX_NAME_CHARACTERS:
        raise invalid(
            f"cannot use the file name: it is longer than {MAX_NAME_CHARACTERS} characters", param=param
        )
    return cleaned


def last_component(name: str) -> str:
    """Return what follows the last slash or backslash, in composed characters."""
    return compose_nfc(name.replace("\\", "/").rpartition("/")[2].strip())


def file_extension(name: str) -> str:
    """Return what follows the last dot of a name, in lower case; empty without one."""
    return name.rpartition(".")[2].lower() if "." in name else ""
