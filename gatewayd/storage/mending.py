"""What models, plugins and clients say, made storable: no answer is lost for a character.

A NUL character and half of a surrogate pair become U+FFFD, a float that is no JSON number becomes null.
"""

import math
from typing import Any

from gatewayd.accounts.texts import mended
from gatewayd.errors import GatewayError
from gatewayd.storage.fields import MAX_DEPTH, encode, encode_large


def encode_mended(value: Any, field: str) -> str:
    """Return a JSON value as the text of a `Json` column; invalid_request for what cannot be mended."""
    try:
        return encode(value, field)
    except GatewayError:
        return encode(_mended_value(value, 0), field)


async def encode_large_mended(value: Any, field: str) -> str:
    """Return what `encode_mended` returns, of a value with long texts, without holding up the event loop."""
    try:
        return await encode_large(value, field)
    except GatewayError:
        return await encode_large(_mended_value(value, 0), field)


def _mended_value(value: Any, depth: int) -> Any:
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_mended_value(name, depth): _mended_value(part, depth + 1) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_mended_value(part, depth + 1) for part in value]
    return value
