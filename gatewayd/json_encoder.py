"""Incremental JSON encoder: encodes values of any size in parts, so that the event loop is never blocked.

orjson cannot be interrupted, so each step encodes a few milliseconds of values. The joined parts equal the
result of encoding at once.
"""

from collections.abc import AsyncIterable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from gatewayd.time_slices import LoopPacer

MAX_STEP_WEIGHT: Final = 4_000
"""Maximum number of values of one step; CHARACTERS_PER_VALUE characters of text count as one."""

CHARACTERS_PER_VALUE: Final = 64
MAX_TEXT_SLICE_CHARACTERS: Final = 512 * 1024
"""Maximum number of characters of a text in one step."""


@dataclass(frozen=True, slots=True)
class EncodedJson:
    """A value that is JSON already, in parts, within another value."""

    parts: Sequence[bytes]


async def encode(value: Any) -> Sequence[bytes]:
    """Return the parts of a JSON text; values may be `EncodedJson`. Raises TypeError for other types."""
    if is_light(value):
        return [orjson.dumps(value)]
    encoder = _Encoder()
    await encoder.add(value)
    return encoder.parts


async def encode_pages(pages: AsyncIterable[Sequence[Any]]) -> Sequence[bytes]:
    """Return the parts of a JSON list; its members come in pages, each of which is one step."""
    parts, opening, pace = list[bytes](), b"[", LoopPacer()
    async for page in pages:
        if page:
            parts.append(opening + orjson.dumps(page)[1:-1])
            opening = b","
        await pace.turn()
    parts.append(b"]" if parts else b"[]")
    return parts


class _Encoder:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._pace = LoopPacer()

    async def add(self, value: Any) -> None:
        """Add a value that is too large for one step."""
        if isinstance(value, dict):
            await self._object(value)
        elif isinstance(value, list):
            await self._list(value)
        elif isinstance(value, str):
            await self._text(value)
        elif isinstance(value, EncodedJson):
            self.parts.extend(value.parts)
        else:
            self.parts.append(orjson.dumps(value))

    async def _list(self, members: list[Any]) -> None:
        opening = b"["
        batch: list[Any] = []
        left = MAX_STEP_WEIGHT
        for member in members:
            left = _left(member, left - 1)
            if left >= 0:
                batch.append(member)
                continue
            opening = self._inside(opening, batch)
            batch, left = [], MAX_STEP_WEIGHT
            await self._pace.turn()
            weight_left = _left(member, MAX_STEP_WEIGHT)
            if weight_left >= 0:
                batch.append(member)
                left = weight_left
                continue
            self.parts.append(opening)
            opening = b","
            await self.add(member)
        opening = self._inside(opening, batch)
        self.parts.append(b"[]" if opening == b"[" else b"]")

    async def _object(self, members: dict[str, Any]) -> None:
        opening = b"{"
        batch: dict[str, Any] = {}
        left = MAX_STEP_WEIGHT
        for name, member in members.items():
            left = _left(member, left - 1 - len(name) // CHARACTERS_PER_VALUE)
            if left >= 0:
                batch[name] = member
                continue
            opening = self._inside(opening, batch)
            batch, left = {}, MAX_STEP_WEIGHT
            await self._pace.turn()
            weight_left = _left(member, MAX_STEP_WEIGHT)
            if weight_left >= 0:
                batch[name] = member
                left = weight_left
                continue
            self.parts.append(opening + orjson.dumps(name) + b":")
            opening = b","
            await self.add(member)
        opening = self._inside(opening, batch)
        self.parts.append(b"{}" if opening == b"{" else b"}")

    async def _text(self, text: str) -> None:
        self.parts.append(b'"')
        for start in range(0, len(text), MAX_TEXT_SLICE_CHARACTERS):
            self.parts.append(orjson.dumps(text[start : start + MAX_TEXT_SLICE_CHARACTERS])[1:-1])
            await self._pace.turn()
        self.parts.append(b'"')

    def _inside(self, opening: bytes, batch: list[Any] | dict[str, Any]) -> bytes:
        """Add members without the brackets around them, and return the separator before the next one."""
        if not batch:
            return opening
        self.parts.append(opening + orjson.dumps(batch)[1:-1])
        return b","


def is_light(value: Any) -> bool:
    """Return whether a value is encoded in one step."""
    return _left(value, MAX_STEP_WEIGHT) >= 0


def _left(value: Any, weight: int) -> int:
    """Return the weight left after a value; below 0 if the value is heavier or contains `EncodedJson`."""
    left: list[Collection[Any]] = [(value,)]
    while left:
        members = left.pop()
        weight -= len(members)
        if weight < 0:
            break
        for each in members:
            if isinstance(each, str):
                weight -= len(each) // CHARACTERS_PER_VALUE
            elif isinstance(each, dict):
                weight -= len(each)
                left.append(each.values())
            elif isinstance(each, list):
                left.append(each)
            elif isinstance(each, EncodedJson):
                return -1
    return weight
