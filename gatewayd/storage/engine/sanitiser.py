"""What models, plugins and clients say, made storable: no answer is lost for a character.

A NUL character and half of a surrogate pair become U+FFFD, a float that is no JSON number becomes null.
"""

from typing import Any

from gatewayd.errors import GatewayError
from gatewayd.storage.engine.fields import encode, encode_large
from gatewayd.text import MAX_STORED_DEPTH, storable_value


def encode_sanitised(value: Any, field: str) -> str:
    """Return a JSON value as the text of a `Json` column; invalid_request for what cannot be mended."""
    try:
        return encode(value, field)
    except GatewayError:
        return encode(_mended_value(value), field)


async def encode_large_sanitised(value: Any, field: str) -> str:
    """Return what `encode_sanitised` does, for a value with long texts; the event loop goes on."""
    try:
        return await encode_large(value, field)
    except GatewayError:
        return await encode_large(_mended_value(value), field)


def _mended_value(value: Any) -> Any:
    """Return a value as far as it can be mended; what is too deep or no JSON stays, and is refused."""
    return storable_value(value, lambda odd: odd, MAX_STORED_DEPTH + 1)
