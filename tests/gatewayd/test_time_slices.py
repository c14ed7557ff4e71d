"""Tests for gatewayd.time_slices."""

import asyncio
import unicodedata
from collections.abc import Iterator

import pytest

from gatewayd.time_slices import SLICE_CHARACTERS, LoopPacer, iterate_paced, map_slices


async def test_others_are_served_when_a_slice_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")
    await LoopPacer().turn()
    assert turns == []
    monkeypatch.setattr(LoopPacer, "seconds", 0.0)
    await LoopPacer().turn()
    assert turns == ["other"]


@pytest.mark.parametrize("text", ["", "short", "e\u0301 " * 100_000, "漢" * 200_000, "e\u0301" * 100_000])
async def test_slices_make_what_the_whole_makes(text: str) -> None:
    def composed(part: str) -> str:
        return unicodedata.normalize("NFC", part)

    assert await map_slices(composed, text) == composed(text)


async def test_others_are_served_between_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopPacer, "seconds", 0.0)
    turns: list[object] = []

    def items() -> Iterator[int]:
        for number in range(2):
            turns.append(number)
            yield number

    asyncio.get_running_loop().call_soon(turns.append, "other")
    assert await iterate_paced(items()) == [0, 1]
    assert turns == [0, "other", 1]


async def test_no_slice_is_large() -> None:
    sizes: list[int] = []

    def noted(part: str) -> str:
        sizes.append(len(part))
        return part

    text = "漢" * 500_000
    assert await map_slices(noted, text) == text
    assert max(sizes) <= 2 * SLICE_CHARACTERS
