"""Tests for gatewayd.json_encoder."""

import random
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from gatewayd import json_encoder
from tests.gatewayd.test_json_decoder import some_value


@pytest.mark.parametrize("seed", range(4))
async def test_parts_are_what_the_encoder_makes_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_encoder, "MAX_STEP_WEIGHT", 12)
    monkeypatch.setattr(json_encoder, "MAX_TEXT_SLICE_CHARACTERS", 40)
    chance = random.Random(seed)
    for _ in range(100):
        value = some_value(chance)
        assert b"".join(await json_encoder.encode(value)) == orjson.dumps(value)


async def test_what_is_small_is_one_part() -> None:
    assert await json_encoder.encode({"a": [1, "x" * 1000]}) == [orjson.dumps({"a": [1, "x" * 1000]})]


async def test_no_part_is_large() -> None:
    value = [{"id": "x" * 36, "n": [1, 2]}] * 20_000 + ["\n" * 2_000_000]
    parts = await json_encoder.encode(value)
    assert max(map(len, parts)) <= 2 * json_encoder.MAX_TEXT_SLICE_CHARACTERS


@pytest.mark.parametrize("pages", [[], [[]], [[1], [], [{"a": "ü"}, 2], [None]]])
async def test_a_list_in_pages_is_one_list(pages: list[list[Any]]) -> None:
    async def each() -> AsyncIterator[list[Any]]:
        for page in pages:
            yield page

    parts = await json_encoder.encode_pages(each())
    members = [member for page in pages for member in page]
    assert orjson.loads(b"".join(parts)) == members
    inside = {"a": [1, {"b": json_encoder.EncodedJson(parts)}], "c": json_encoder.EncodedJson(parts)}
    assert b"".join(await json_encoder.encode(inside)) == orjson.dumps(
        {"a": [1, {"b": members}], "c": members}
    )


async def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError):
        await json_encoder.encode([object()] * 10_000)
