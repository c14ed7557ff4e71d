"""Tests for gatewayd.json_decoder."""

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatewayd import json_decoder
from gatewayd.errors import ErrorKind, GatewayError
from gatewayd.json_decoder import (
    BULK_LIMITS,
    LARGE_LIMITS,
    SMALL_LIMITS,
    JsonLimits,
    JsonMembers,
    UndecodedMember,
    decode,
)
from gatewayd.time_slices import LoopPacer

TEXTS = [
    "", 'a"b\\', "é漢😀" * 40, "x" * 700, "\\" * 150, "\n\u0001" * 150, "[{,}]:\"", "\\u0041", '"' * 90,
]  # fmt: skip
NAMES = ["", '"', "\\", "é[,", '{"}:']
CHATS = UndecodedMember("chats", 3)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have pieces of a few bytes, so that small texts meet every border."""
    sizes = {"SLICE_BYTES": 64, "MAX_LIGHT_BYTES": 0, "MAX_TEXT_SLICE_BYTES": 100, "MAX_STEP_TOKENS": 5}
    for name, size in sizes.items():
        monkeypatch.setattr(json_decoder, name, size)


def some_value(chance: random.Random, depth: int = 0) -> Any:
    kind = chance.random()
    if depth > 5 or kind < 0.3:
        return chance.choice([None, True, 1, -5, 1.5, *TEXTS])
    count = chance.randint(0, 7)
    if kind < 0.65:
        return [some_value(chance, depth + 1) for _ in range(count)]
    names = [f"k{place}" if chance.random() < 0.8 else chance.choice(NAMES) for place in range(count)]
    return {name: some_value(chance, depth + 1) for name in names}


def damaged(chance: random.Random, text: bytes) -> bytes:
    made = bytearray(text)
    place = chance.randrange(len(made))
    made[place : place + chance.randint(0, 1)] = bytes([chance.choice(b'[]{},:"\\ 1')])
    return bytes(made)


def at_once(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return GatewayError


async def in_pieces(text: bytes) -> Any:
    try:
        return await decode(text, LARGE_LIMITS)
    except GatewayError as error:
        # Blanks and numbers of this length are refused: nobody writes them.
        return at_once(text) if "too long" in error.message else GatewayError


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("seed", range(8))
async def test_pieces_make_what_the_decoder_makes_at_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_decoder, "MAX_STRETCH_BYTES", (16, 64, 4096)[seed % 3])
    chance = random.Random(seed)
    for _ in range(60):
        value = {"v": some_value(chance)}
        is_ascii, indent = chance.random() < 0.5, chance.choice([None, 1])
        text = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
        assert await decode(text, LARGE_LIMITS) == value
        odd = damaged(chance, text)
        assert await in_pieces(odd) == at_once(odd)


def measures(value: Any) -> tuple[int, int, int]:
    """Return how many containers and commas a value has, and how deep it nests."""
    if not isinstance(value, (dict, list)):
        return 0, 0, 0
    inner = [measures(each) for each in (value.values() if isinstance(value, dict) else value)]
    containers, commas, depths = zip(*inner, strict=True) if inner else ((), (), ())
    return 1 + sum(containers), sum(commas) + max(len(inner) - 1, 0), 1 + max(depths, default=0)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("stretch", [16, 64, 4096])
async def test_limits_are_exact(stretch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_decoder, "MAX_STRETCH_BYTES", stretch)
    monkeypatch.setattr(json_decoder, "is_light", lambda _: False)
    chance = random.Random(stretch)
    for _ in range(20):
        value = [some_value(chance), [[]]]
        text = json.dumps(value).encode()
        containers, commas, depth = measures(value)
        values = containers + commas
        assert await decode(text, JsonLimits(containers, values, depth)) == value
        for limits in (
            JsonLimits(containers - 1, values, depth),
            JsonLimits(containers, values - 1, depth),
            JsonLimits(containers, values, depth - 1),
        ):
            with pytest.raises(GatewayError, match=r"more lists and objects|more values|nests deeper"):
                await decode(text, limits)


@given(st.binary(max_size=200))
async def test_any_bytes_give_a_value_or_a_clear_refusal(data: bytes) -> None:
    refusal = None
    try:
        await decode(data, SMALL_LIMITS)
    except GatewayError as error:
        refusal = error
    assert refusal is None or refusal.code == "json_invalid"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: b"[" + b"[]," * 20_000_000 + b"[]]", "more lists and objects than 50000"),
        (lambda: b'{"a":[' + b"1," * 20_000_000 + b"1]}", "more values than 500000"),
        (lambda: b"[" + b"{}," * 60_000 + b"{}]", "more lists and objects than 50000"),
    ],
    ids=["lists", "numbers", "objects"],
)
async def test_what_holds_too_much_is_refused_before_it_is_built(
    made: Callable[[], bytes], words: str
) -> None:
    with pytest.raises(GatewayError, match=words) as caught:
        await decode(made(), LARGE_LIMITS)
    assert caught.value.kind is ErrorKind.TOO_LARGE


async def test_brackets_and_commas_in_texts_do_not_count() -> None:
    text = "[{,}]" * 200_000 + '\\"'
    assert await decode(orjson.dumps([text]), JsonLimits(1, 1)) == [text]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("text", [b"[" * 65 + b"]" * 65, b'{"a":' * 450 + b"1" + b"}" * 450])
async def test_depth_is_bounded(text: bytes) -> None:
    with pytest.raises(GatewayError, match="deeper than 64 levels"):
        await decode(text, BULK_LIMITS)
    assert await decode(b"[" * 64 + b"]" * 64, BULK_LIMITS)


@pytest.mark.parametrize(
    ("start", "unit", "end", "words"),
    [
        (b"[", b"1", b"]", "too long"),
        (b"", b" ", b"[]", "list or an object"),
        (b'{"', b"n", b'":1}', "name is missing or too long"),
        (b'["', b"n", b"", "does not end"),
        (b'"', b"n", b'"', "list or an object"),
    ],
)
async def test_what_nobody_writes_is_refused(start: bytes, unit: bytes, end: bytes, words: str) -> None:
    with pytest.raises(GatewayError, match=words):
        await decode(start + unit * 3_000_000 + end, BULK_LIMITS)


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀", "\n", '"', "\\", "\u0001"])
async def test_a_long_text_is_built_of_parts(character: str) -> None:
    text = character * 3_000_000 + "end"
    assert (await decode(json.dumps({"a": text, "b": [text]}).encode(), SMALL_LIMITS)) == {
        "a": text,
        "b": [text],
    }
    assert (await decode(orjson.dumps([text]), SMALL_LIMITS)) == [text]


@pytest.mark.parametrize(
    "unit", ["\\\\", "\\n", "\\u0000", "\\ud83d\\ude00", "\\\\ud83d", "\\u00e9\U0001f600"]
)
async def test_a_long_text_of_escapes_is_built_of_small_parts(
    monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    text = f'{{"a":["x{unit * 500_000}"]}}'.encode()
    whole = orjson.loads(text)
    sizes: list[int] = []

    def noted(data: bytes) -> Any:
        sizes.append(len(data))
        return json.loads(data)

    monkeypatch.setattr("gatewayd.json_decoder.orjson.loads", noted)
    assert await decode(text, SMALL_LIMITS) == whole
    assert max(sizes) <= json_decoder.MAX_TEXT_SLICE_BYTES + 5


@pytest.mark.parametrize(
    ("first", "characters"),
    [
        ("a", 8_000_000),
        ("\u00e9", 4_000_000),
        ("\u6f22", 4_000_000),
        ("\U0001f600", 2_000_000),
        ("\\ud83d\\ude00", 2_000_000),
    ],
)
async def test_the_memory_of_one_text_is_bounded(
    monkeypatch: pytest.MonkeyPatch, first: str, characters: int
) -> None:
    monkeypatch.setattr("gatewayd.json_decoder.MAX_TEXT_BYTES", 8_000_000)
    for text in (first + "x" * (characters - 1), "x" * (characters - 1) + first):
        [found] = await decode(f'["{text}"]'.encode(), SMALL_LIMITS)
        assert len(found) == characters
        with pytest.raises(GatewayError, match=f"more than {characters} characters"):
            await decode(f'["{text}x"]'.encode(), SMALL_LIMITS)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "bad", ["\\ud83d", "\\ud83dx", "\\ud83d\\n", "\\udc00", "\\u12", "\\x", "\x01", "\\ud83d\\u00e9"]
)
async def test_a_long_text_with_a_broken_escape_is_refused(bad: str) -> None:
    for text in (f"{bad}{'x' * 500}", f"{'x' * 150}{bad}{'x' * 50}", "\\n" * 300 + bad):
        with pytest.raises(GatewayError, match="as JSON"):
            await decode(f'{{"a":"{text}"}}'.encode(), SMALL_LIMITS)


async def test_bytes_that_continue_no_character_are_refused_in_small_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece that is decoded has a slice at most, and the rest of a character."""
    sizes, loads = [], json_decoder._loads

    def noted(data: Any, *args: Any, **options: Any) -> Any:
        sizes.append(len(data))
        return loads(data, *args, **options)

    monkeypatch.setattr(json_decoder, "_loads", noted)
    with pytest.raises(GatewayError, match="not valid UTF-8"):
        await decode(b'["' + b"\x80" * (8 * 1024 * 1024) + b'"]', LARGE_LIMITS)
    assert max(sizes) <= json_decoder.MAX_TEXT_SLICE_BYTES + 5


@pytest.mark.parametrize("depth", [100, 990])
def test_a_long_integer_deep_inside_is_too_deep_first(depth: int) -> None:
    text = b"[" * depth + b"1234567890123456789" + b"]" * depth
    with pytest.raises(GatewayError, match="nests deeper"):
        json_decoder.decode_at_once(text)


@pytest.mark.parametrize(
    "number", ["18446744073709551615", "-9223372036854775808", "0.12345678901234567890123"]
)
async def test_numbers_that_can_be_passed_on_are_taken(number: str) -> None:
    assert await decode(f'{{"seed": {number}}}'.encode(), SMALL_LIMITS)


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" * 5000])
@pytest.mark.parametrize("size", [0, 2_000_000])
async def test_integers_that_would_change_are_refused(number: str, size: int) -> None:
    text = f'{{"text": "12345678901234567890123{"x" * size}", "seed": {number}}}'.encode()
    with pytest.raises(GatewayError) as caught:
        await decode(text, SMALL_LIMITS)
    assert caught.value.code == "json_invalid"


async def test_members_are_decoded_when_their_turn_comes() -> None:
    value = await decode(b'{"a": [1, 2], "chats": [{"x": [1]}, [] , 3 ], "b": {}}', SMALL_LIMITS, CHATS)
    members = value.pop("chats")
    assert value == {"a": [1, 2], "b": {}}
    assert isinstance(members, JsonMembers)
    assert len(members) == 3
    for _ in range(2):
        assert [each async for each in members.each()] == [{"x": [1]}, [], 3]


async def test_others_are_served_between_members(monkeypatch: pytest.MonkeyPatch) -> None:
    members = (await decode(b'{"chats": [1, 2]}', SMALL_LIMITS, CHATS))["chats"]
    monkeypatch.setattr(LoopPacer, "seconds", 0.0)
    turns: list[object] = []
    asyncio.get_running_loop().call_soon(turns.append, "other")
    async for each in members.each():
        turns.append(each)
    assert turns == ["other", 1, 2]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("seed", range(4))
async def test_large_members_are_decoded_where_they_stand(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        values = [[some_value(chance)] for _ in range(chance.randint(0, 3))]
        text = json.dumps({"b": 1, "chats": values}, indent=chance.choice([None, 1])).encode()
        value = await decode(text, LARGE_LIMITS, CHATS)
        assert [each async for each in value["chats"].each()] == values


async def test_limits_hold_for_each_member() -> None:
    each = b"[" + b"[]," * 5 + b"[]]"
    value = await decode(b'{"chats":[%b,%b,%b]}' % (each, each, each), JsonLimits(9, 20), CHATS)
    assert len(value["chats"]) == 3
    with pytest.raises(GatewayError, match="more lists and objects than 9"):
        await decode(b'{"chats":[%b,[%b,%b]]}' % (each, each, each), JsonLimits(9, 20), CHATS)
    with pytest.raises(GatewayError, match="cannot accept chats: there are more than 3"):
        await decode(b'{"chats":[1,2,3,4]}', SMALL_LIMITS, CHATS)


@pytest.mark.parametrize("text", [b'{"chats": 5}', b'{"chats": {"chats": [1]}}', b'[{"chats": [1]}]', b"{}"])
async def test_only_a_list_in_the_outermost_object_stays_undecoded(text: bytes) -> None:
    assert await decode(text, SMALL_LIMITS, CHATS) == orjson.loads(text)


@pytest.mark.parametrize("text", [b'{"chats":[1,]}', b'{"chats":[,1]}', b'{"chats":[1}', b'{"chats":[1]'])
async def test_broken_lists_are_refused(text: bytes) -> None:
    with pytest.raises(GatewayError, match="as JSON"):
        await decode(text, SMALL_LIMITS, CHATS)
