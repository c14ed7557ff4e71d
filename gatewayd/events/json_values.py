"""Conversion of arbitrary values from plugins to JSON that always serialises."""

from types import MappingProxyType
from typing import Any, Final

import orjson
from pydantic import BaseModel

from gatewayd.text import MAX_JSON_DEPTH

MAX_EXACT_INTEGER: Final = 2**63
"""Integers beyond this become floats: JSON readers do not keep them exactly."""

_OPTIONS: Final = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

# Characters that text readers take for a line end although event streams do not (WHATWG HTML, 9.2.6).
_LINE_ENDS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def to_json(value: Any) -> Any:
    """Return a JSON copy of a value: models become objects, sets lists, other values their type name.

    No code of the value runs. Raises ValueError if it nests too deep.
    """
    try:
        data = orjson.dumps(value, _known, _OPTIONS)
    except TypeError:
        # An unpaired surrogate, an integer over 64 bits or a value that contains itself.
        return _cleaned(value, MAX_JSON_DEPTH)
    copy = orjson.loads(data)
    if data.count(b"[") + data.count(b"{") > MAX_JSON_DEPTH:
        return _cleaned(copy, MAX_JSON_DEPTH)
    return copy


def to_json_bytes(value: Any) -> bytes:
    """Return a value of `to_json` as JSON bytes on one line; line-separator characters are escaped."""
    data = orjson.dumps(value)
    for found, escaped in _LINE_ENDS:
        if found in data:
            data = data.replace(found, escaped)
    return data


def _known(value: Any) -> Any:
    match value:
        case BaseModel():
            return dict(value.__dict__)
        case MappingProxyType():
            return dict(value)
        case set() | frozenset() | tuple():
            return list(value)
        case bytes() | bytearray():
            return value.decode("utf-8", "replace")
        case BaseException():
            return " ".join(part for part in value.args if isinstance(part, str))
        case _:
            return f"<{type(value).__name__}>"


def _cleaned(value: Any, levels: int) -> Any:
    if levels < 0:
        raise ValueError(f"it nests deeper than {MAX_JSON_DEPTH} levels")
    match value:
        case None | bool():
            return value
        case str():
            return str.encode(value, "utf-8", "replace").decode()
        case int():
            return int(value) if -MAX_EXACT_INTEGER <= value < MAX_EXACT_INTEGER else _float(value)
        case float():
            return orjson.loads(orjson.dumps(float(value)))
        case dict():
            return {_key(key): _cleaned(item, levels - 1) for key, item in dict.items(dict.copy(value))}
        case list() | tuple():
            return [_cleaned(item, levels - 1) for item in value]
        case _:
            return _cleaned(_known(value), levels - 1)


def _key(key: object) -> str:
    return _cleaned(key, 0) if isinstance(key, str) else f"{_cleaned(key, 1)}"


def _float(value: int) -> float | str:
    try:
        return float(value)
    except OverflowError:
        return "<int>"
