"""How long a stored message may become: its text, and each of its lists."""

from collections.abc import Sequence

from gatewayd.chats.json_limits import MAX_VALUES
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS, MAX_ITEMS, MAX_ITEMS_BYTES
from gatewayd.errors import ErrorKind, GatewayError


def check_content(text: str) -> None:
    """Refuse a text that is too long; too_large naming `content`."""
    if len(text) > MAX_CONTENT_CHARACTERS:
        raise content_too_large()


def check_items(kind: str, values: Sequence[str], *, count: int = 0, size: int = 0) -> int:
    """Return the bytes of encoded values.

    Refuses those that a list of `count` values and `size` bytes has no room for; too_large.
    """
    added = sum(len(value.encode()) for value in values)
    if count + len(values) > MAX_ITEMS or size + added > MAX_ITEMS_BYTES:
        raise GatewayError(
            ErrorKind.TOO_LARGE,
            f"cannot write the message: its {kind} would have over {MAX_ITEMS} values"
            f" or {MAX_ITEMS_BYTES} bytes",
            param=kind,
        )
    return added


def content_too_large() -> GatewayError:
    """Return the error for a text that would become too long."""
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot write the message: its content would have over {MAX_CONTENT_CHARACTERS} characters,"
        f" or its parts over {MAX_VALUES} values",
        param="content",
    )
