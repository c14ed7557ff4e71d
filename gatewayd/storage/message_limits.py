"""Size limits of a stored message: its text, and each of its lists."""

from collections.abc import Sequence

from gatewayd.chats.json_limits import MAX_VALUES
from gatewayd.chats.records import MAX_CONTENT_CHARACTERS, MAX_ITEMS, MAX_ITEMS_BYTES
from gatewayd.errors import ErrorKind, GatewayError


def check_content(text: str) -> None:
    """Raise too_large, naming `content`, for a text above the limit."""
    if len(text) > MAX_CONTENT_CHARACTERS:
        raise content_too_large()


def check_items(kind: str, values: Sequence[str], *, count: int = 0, size: int = 0) -> int:
    """Return the number of bytes of encoded values.

    Raises too_large when a list of `count` values and `size` bytes would exceed its limits with them.
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
    """Return the error for a content above its limits."""
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot write the message: its content would have over {MAX_CONTENT_CHARACTERS} characters,"
        f" or its parts over {MAX_VALUES} values",
        param="content",
    )
