"""Marks in place of signatures: they name who made a reasoning text, and are never sent to a provider; pure.

Clients of the messages protocol send thinking back with its signature. Reasoning of a provider of another
protocol has none, and none is invented: its block carries a mark of the gateway.
"""

import hashlib
from functools import lru_cache
from typing import Final

_MARK: Final = "gatewayd."
_MAX_MARK_CHARACTERS: Final = 80


@lru_cache(maxsize=1024)
def origin_of(maker: str, source: str) -> str:
    """Return the word for who made a reasoning text: the maker, or the source if its maker is unknown."""
    return maker or f"source-{hashlib.sha256(source.encode(errors='replace')).hexdigest()[:16]}"


def mark_of(origin: str) -> str:
    """Return the mark of a reasoning text by its origin."""
    return _MARK + origin


def marked_origin(signature: object) -> str | None:
    """Return the origin that a mark names, None for anything but a mark."""
    if not isinstance(signature, str) or not signature.startswith(_MARK):
        return None
    # Some clients append the signature at the end of a block to that at its start.
    return signature[len(_MARK) : _MAX_MARK_CHARACTERS].partition(_MARK)[0]


def is_signed(block: object) -> bool:
    """Return True if a thinking block is signed by a provider, or encrypted by it."""
    if not isinstance(block, dict):
        return False
    match block.get("type"):
        case "thinking":
            signature = block.get("signature")
        case "redacted_thinking":
            signature = block.get("data")
        case _:
            return False
    return isinstance(signature, str) and bool(signature) and marked_origin(signature) is None
