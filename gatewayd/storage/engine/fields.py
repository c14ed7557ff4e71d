"""Column types that refuse, on every engine alike, values that some engine cannot store unchanged.

SQLite stores texts of any length, PostgreSQL refuses NUL bytes, and each driver has its own error for a
number that is too large. These types raise invalid_request naming the field before any SQL is sent.
"""

import math
from typing import Any

import orjson
from tortoise import fields
from tortoise.models import Model

from gatewayd import json_decoder, json_encoder
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.json_decoder import JsonLimits
from gatewayd.storage.engine.failures import unstorable_error
from gatewayd.text import MAX_INTEGER, MAX_STORED_DEPTH, MIN_INTEGER, storable_value, storage_fault
from gatewayd.time_slices import SLICE_CHARACTERS, LoopPacer

MIN_WHOLE, MAX_WHOLE = -(2**63), 2**63 - 1
MIN_LARGE_CHARACTERS = 256 * 1024
UNLIMITED_JSON = JsonLimits(MAX_WHOLE, MAX_WHOLE, depth=2 * MAX_STORED_DEPTH, has_exact_integers=False)
"""Limits for stored JSON, which was checked when it was written."""

# An index entry of PostgreSQL has at most a third of a page.
MAX_INDEXED_BYTES = 2600


def check_text(value: str, field: str, max_length: int | None = None) -> None:
    """Raise invalid_request for NUL characters, unpaired surrogates and over `max_length` characters."""
    if max_length is not None and len(value) > max_length:
        raise unstorable_error(field, f"it has {len(value)} characters, more than {max_length}")
    fault = storage_fault(value)
    if fault is not None:
        raise unstorable_error(field, fault)


def fits_columns(row: type[Model], **values: str) -> bool:
    """Return whether a row can store these texts; no row needs to be searched for one that it cannot."""
    try:
        for name, value in values.items():
            row._meta.fields_map[name].to_db_value(value, row)
    except GatewayError:
        return False
    return True


def encode(value: Any, field: str) -> str:
    """Return a JSON value as the text for a `JsonColumn`."""
    _check_json(value, field)
    return orjson.dumps(value).decode()


async def encode_large(value: Any, field: str) -> str:
    """Return what `encode` returns, for a value with long texts, without blocking the event loop."""
    await _check_large(value, field)
    parts = await json_encoder.encode(value)
    if len(parts) == 1:
        return parts[0].decode()
    decoded = []
    pace = LoopPacer()
    for part in parts:
        await pace.turn()
        decoded.append(part.decode())
    return "".join(decoded)


def encode_sanitised(value: Any, field: str) -> str:
    """Return what `encode` returns; a value of a model, plugin or client is sanitised first if need be.

    NUL characters and unpaired surrogates become U+FFFD, a float that is no JSON number becomes null. Raises
    invalid_request for a value that is nested too deeply or is no JSON value.
    """
    try:
        return encode(value, field)
    except GatewayError:
        return encode(_sanitised_value(value), field)


async def encode_large_sanitised(value: Any, field: str) -> str:
    """Return what `encode_sanitised` returns, for a value with long texts, without blocking the event
    loop."""
    try:
        return await encode_large(value, field)
    except GatewayError:
        return await encode_large(_sanitised_value(value), field)


def _sanitised_value(value: Any) -> Any:
    """Return a sanitised value; too deep and non-JSON parts are unchanged, and `encode` refuses them."""
    return storable_value(value, lambda odd: odd, MAX_STORED_DEPTH + 1)


async def _check_large(value: Any, field: str) -> None:
    """Check a value; long texts, which `check_text` would copy, are checked in slices."""
    pace = LoopPacer()
    left: list[tuple[Any, int]] = [(value, 0)]
    while left:
        one, depth = left.pop()
        if depth > MAX_STORED_DEPTH:
            raise _too_deep(field)
        if isinstance(one, str) and len(one) > SLICE_CHARACTERS:
            for start in range(0, len(one), SLICE_CHARACTERS):
                check_text(one[start : start + SLICE_CHARACTERS], field)
                await pace.turn()
        elif isinstance(one, dict | list | tuple):
            left += _members(one, depth, field)
            await pace.turn()
        else:
            _check_scalar(one, field)


def encode_optional(value: Any, field: str) -> str | None:
    """Return a JSON value as text; None (no value) stays None."""
    return None if value is None else encode(value, field)


def decode(text: str | None, where: str) -> Any:
    """Return the JSON value of a column; internal, naming `where`, when the text is damaged."""
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _damaged(where) from error


async def decode_large(text: str | None, where: str) -> Any:
    """Return what `decode` returns, for a text of any length, without blocking the event loop."""
    # The sliced decoder accepts lists and objects only; a plain string is decoded fast.
    if text is None or len(text) <= MIN_LARGE_CHARACTERS or not text.startswith(("{", "[")):
        return decode(text, where)
    try:
        return await json_decoder.decode(text.encode(), UNLIMITED_JSON)
    except GatewayError:
        # The sliced decoder also refuses values that only request bodies must not have, such as long names.
        return decode(text, where)


def _damaged(where: str) -> GatewayError:
    return GatewayError(ErrorKind.INTERNAL, f"cannot read {where}: the stored JSON is damaged")


def _check_json(root: Any, field: str) -> None:
    left: list[tuple[Any, int]] = [(root, 0)]
    while left:
        value, depth = left.pop()
        if depth > MAX_STORED_DEPTH:
            raise _too_deep(field)
        if isinstance(value, dict | list | tuple):
            left += _members(value, depth, field)
        else:
            _check_scalar(value, field)


def _members(
    value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int, field: str
) -> list[tuple[Any, int]]:
    """Return the members of a value, including names, with their depth."""
    if not isinstance(value, dict):
        return [(part, depth + 1) for part in value]
    if not all(isinstance(key, str) for key in value):
        raise unstorable_error(field, "an object in it has a name that is no string")
    return [(part, depth + 1) for pair in value.items() for part in pair]


def _too_deep(field: str) -> GatewayError:
    return unstorable_error(field, f"it is nested more than {MAX_STORED_DEPTH} levels deep")


def _check_scalar(value: Any, field: str) -> None:
    if isinstance(value, str):
        check_text(value, field)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise unstorable_error(field, f"it contains {value}, which is no JSON number")
    elif isinstance(value, bool) or value is None:
        return
    elif not isinstance(value, int):
        raise unstorable_error(field, f"it contains a {type(value).__name__}, which is no JSON value")
    elif not MIN_INTEGER <= value <= MAX_INTEGER:
        raise unstorable_error(field, "it contains a whole number of more than 64 bits")


class NameColumn(fields.CharField[Any]):
    """An indexable text of at most `max_length` characters, sorted by code point on every engine."""

    def to_db_value(self, value: Any, instance: Any) -> str | None:
        """Return the checked text unchanged."""
        if value is None:
            return None
        text = str(value)
        check_text(text, self.model_field_name, self.max_length)
        if len(text.encode()) > MAX_INDEXED_BYTES:
            raise unstorable_error(self.model_field_name, f"it is longer than {MAX_INDEXED_BYTES} bytes")
        return text

    class _db_postgres:  # noqa: N801 - the name that the ORM looks for
        def __init__(self, field: "NameColumn") -> None:
            self._field = field

        @property
        def SQL_TYPE(self) -> str:  # noqa: N802 - the name that the ORM looks for
            return f'VARCHAR({self._field.max_length}) COLLATE "C"'


class TextColumn(fields.TextField):
    """A text of any length."""

    def to_db_value(self, value: Any, instance: Any) -> str | None:
        """Return the checked text unchanged."""
        if value is None:
            return None
        check_text(str(value), self.model_field_name)
        return str(value)


class JsonColumn(fields.TextField):
    """JSON as text, written by `encode` and read by `decode`.

    The ORM's own JSON column treats a string as encoded JSON, so the value "1" would be read as the number 1.
    """

    class _db_postgres:  # noqa: N801 - the name that the ORM looks for
        SQL_TYPE = "JSONB"


class IntegerColumn(fields.BigIntField):
    """A whole number of 64 bits; also the type of epoch seconds."""

    def to_db_value(self, value: Any, instance: Any) -> int | None:
        """Return the checked number unchanged."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise unstorable_error(self.model_field_name, "it is no whole number")
        if not MIN_WHOLE <= value <= MAX_WHOLE:
            raise unstorable_error(self.model_field_name, "it has more than 64 bits")
        return value
